//! Converts a value of the script to JSON. Returns an error for each value that JSON cannot express. `JSON.stringify`
//! would silently drop such a value.

use kaos_policy_sdk::Path;
use rquickjs::{Array, Ctx, Filter, Object, Type, Value as Script};
use serde_json::{Map, Number, Value};

/// The maximum number of nested levels. With this limit, a value that contains itself also gives an error.
const LEVELS: usize = 64;
/// JavaScript's `Number.MAX_SAFE_INTEGER`. A larger number may be another integer that JavaScript rounded.
const SAFE: f64 = 9_007_199_254_740_991.0;

/// An error: the problem of a wrong value, and the path of the value in the script's answer.
#[derive(Debug)]
pub(crate) struct Wrong {
    pub(crate) path: Path,
    pub(crate) problem: String,
}

impl Wrong {
    pub(crate) fn new(problem: impl Into<String>) -> Self {
        Self { path: Path::default(), problem: problem.into() }
    }

    /// Prepends the member `key` to the path.
    pub(crate) fn below(self, key: &str) -> Self {
        let path = self.path.under(Path::default().key(key).as_str());
        Self { path, ..self }
    }

    /// Prepends the index `at` to the path.
    pub(crate) fn below_item(self, at: usize) -> Self {
        let path = self.path.under(Path::default().index(at).as_str());
        Self { path, ..self }
    }
}

/// Returns the value as JSON. `undefined` is `None`.
pub(crate) fn plain<'js>(ctx: &Ctx<'js>, value: &Script<'js>) -> Result<Option<Value>, Wrong> {
    let objects = ctx.globals().get::<_, Object<'js>>("Object").and_then(|it| it.get::<_, Object<'js>>("prototype"));
    Reader { objects: objects.ok() }.read(value, 0)
}

struct Reader<'js> {
    /// The prototype of plain objects.
    objects: Option<Object<'js>>,
}

impl<'js> Reader<'js> {
    fn read(&self, value: &Script<'js>, level: usize) -> Result<Option<Value>, Wrong> {
        let wrong = |problem: &str| Err(Wrong::new(problem));
        if level > LEVELS {
            return wrong("has more than 64 levels, or contains itself: use fewer levels, and no circular reference");
        }
        let read = match value.type_of() {
            Type::Undefined | Type::Uninitialized => return Ok(None),
            Type::Null => Value::Null,
            Type::Bool => Value::Bool(value.as_bool().unwrap_or_default()),
            Type::Int | Type::Float => Value::Number(number(value.as_number().unwrap_or(f64::NAN))?),
            Type::String => match value.as_string().map(rquickjs::String::to_string) {
                Some(Ok(text)) => Value::String(text),
                _ => return wrong("is a text with half a character (a lone surrogate): write whole characters"),
            },
            Type::Array => match value.as_array() {
                Some(array) => self.array(array, level)?,
                None => return wrong("cannot be read"),
            },
            Type::Object => match value.as_object() {
                Some(object) => self.object(object, level)?,
                None => return wrong("cannot be read"),
            },
            Type::BigInt => return wrong("is a BigInt, which JSON does not have: write a number or a text"),
            Type::Function | Type::Constructor => return wrong("is a function: call it, and write its result"),
            Type::Promise => return wrong("is a Promise, and a policy does not wait: remove `async` and `await`"),
            Type::Exception => return wrong("is an error: throw it instead"),
            _ => return wrong("is not a value that JSON has: write a text, a number, a list or an object"),
        };
        Ok(Some(read))
    }

    fn array(&self, array: &Array<'js>, level: usize) -> Result<Value, Wrong> {
        let mut list = Vec::with_capacity(array.len().min(1024));
        for (at, item) in array.iter::<Script<'js>>().enumerate() {
            let absent = || Wrong::new("is undefined: leave the item out of the list").below_item(at);
            let item = item.map_err(|_| absent())?;
            let item = self.read(&item, level + 1).map_err(|wrong| wrong.below_item(at))?;
            list.push(item.ok_or_else(absent)?);
        }
        Ok(Value::Array(list))
    }

    fn object(&self, object: &Object<'js>, level: usize) -> Result<Value, Wrong> {
        let prototype = object.get_prototype();
        if prototype.is_some() && prototype != self.objects {
            let problem = "is an object of a class, such as a Map or a Date: write a plain object or a text";
            return Err(Wrong::new(problem));
        }
        let mut map = Map::new();
        let unreadable = || Wrong::new("has a member that cannot be read: write plain members");
        for key in object.own_keys::<String>(Filter::new().string().enum_only()) {
            let key = key.map_err(|_| unreadable())?;
            let value = object.get::<_, Script<'js>>(key.as_str()).map_err(|_| unreadable())?;
            if let Some(value) = self.read(&value, level + 1).map_err(|wrong| wrong.below(&key))? {
                map.insert(key, value);
            }
        }
        Ok(Value::Object(map))
    }
}

/// Converts a number to JSON. A number without a fraction becomes an integer.
#[allow(clippy::cast_possible_truncation, reason = "the number is a safe integer")]
fn number(number: f64) -> Result<Number, Wrong> {
    if number.fract() == 0.0 {
        if number.abs() > SAFE {
            let problem = format!(
                "is {number}, and JavaScript has no exact integers above 9007199254740991 (2^53 - 1): write it as a \
                 text"
            );
            return Err(Wrong::new(problem));
        }
        return Ok(Number::from(number as i64));
    }
    Number::from_f64(number)
        .ok_or_else(|| Wrong::new(format!("is {number}, which JSON does not have: check the calculation")))
}
