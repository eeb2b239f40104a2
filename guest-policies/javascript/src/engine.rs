//! Starts QuickJS, loads the script, and calls its functions.

use std::cell::OnceCell;

use rquickjs::{
    CatchResultExt as _, CaughtError, Context, Ctx, Function, Module, Object, Persistent, Runtime, Value as Script,
    context::{EvalOptions, intrinsic},
    function::Args,
};
use serde_json::Value;

use crate::{
    bindings::exports::kaos::policy::script::Kind,
    error_text::{ErrorText, defined_at, exported_at},
    failure::fail,
    helpers,
    plain::{Wrong, plain},
    progress,
};

/// The functions of a policy that is not an overlay. The script must export `describe` and `translate`, because the
/// prelude has no defaults for them.
const POLICY: [&str; 5] = ["describe", "needs", "mapEnv", "translate", "assess"];
/// The functions of an overlay. The function `amend` makes a script an overlay.
const OVERLAY: [&str; 4] = ["describe", "needs", "mapEnv", "amend"];
const PRELUDE: &str = include_str!("prelude.js");
/// The maximum stack in bytes while the script loads. When the host's stack is full, the host ends the sandbox without
/// a message, so QuickJS must reach this limit first. QuickJS's parser uses much of the host's stack for each level of
/// a nested expression.
const PARSER_STACK: usize = 20 << 10;
/// The maximum stack in bytes while a function of the script runs: enough for about a hundred nested calls.
const STACK: usize = 32 << 10;
/// The number of bytes that a script allocates before the garbage collector runs. Most scripts allocate less.
const GARBAGE: usize = 4 << 20;

/// The built-in objects of JavaScript. The list lacks proxies, typed arrays and weak references, because no policy
/// needs them.
type Intrinsics = (
    intrinsic::Date,
    intrinsic::Eval,
    intrinsic::RegExpCompiler,
    intrinsic::RegExp,
    intrinsic::Json,
    intrinsic::MapSet,
    intrinsic::Promise,
);

thread_local! {
    static LOADED: OnceCell<Loaded> = const { OnceCell::new() };
}

struct Loaded {
    functions: Persistent<Object<'static>>,
    context: Context,
    runtime: Runtime,
    file: String,
}

/// The result of a call. Only the functions `mapEnv`, `translate` and `amend` may refuse an object.
pub(crate) enum Answer {
    /// The returned value; `None` for `undefined`.
    Returned(Option<Value>),
    /// The thrown refusal.
    Refused(Value),
}

/// Loads a script. Stops the script when `progress::poll` has counted `stop_at` calls; never, if it is 0.
pub(crate) fn load(file: &str, source: &str, memory: u64, stop_at: u64) -> Result<Kind, String> {
    let (loaded, kind) = Loaded::new(file, source, memory, stop_at)?;
    LOADED.with(|cell| cell.set(loaded)).map_err(|_| format!("{file}: another script is loaded already"))?;
    Ok(kind)
}

/// Calls a function of the script with values as JSON text. Ends the sandbox if the function fails.
pub(crate) fn call(name: &str, arguments: &[String]) -> Answer {
    LOADED.with(|cell| match cell.get() {
        None => fail("no script is loaded"),
        Some(loaded) => loaded.call(name, arguments).unwrap_or_else(|message| fail(&message)),
    })
}

/// Ends the sandbox, because a function returned a wrong value.
pub(crate) fn wrong_answer(name: &str, wrong: &Wrong) -> ! {
    let told = LOADED.with(|cell| cell.get().map(|loaded| loaded.wrong(name, wrong)));
    fail(&told.unwrap_or_else(|| wrong.problem.clone()))
}

impl Loaded {
    fn new(file: &str, source: &str, memory: u64, stop_at: u64) -> Result<(Self, Kind), String> {
        let broken = |error: rquickjs::Error| format!("{file}:1:1: the script engine does not start: {error}");
        let runtime = Runtime::new().map_err(broken)?;
        // The rest of the memory is for the engine itself, and for the texts that the host and the engine exchange.
        runtime.set_memory_limit(usize::try_from(memory / 8 * 5).unwrap_or(usize::MAX));
        runtime.set_gc_threshold(GARBAGE);
        runtime.set_max_stack_size(PARSER_STACK);
        runtime.set_interrupt_handler(Some(Box::new(move || progress::poll() == stop_at)));
        let context = Context::custom::<Intrinsics>(&runtime).map_err(broken)?;
        let (functions, kind) = context.with(|ctx| -> Result<_, String> {
            let defaults = prelude(&ctx).map_err(broken)?;
            let exports = evaluated(&ctx, file, source)?;
            let kind = kind(file, &exports)?;
            let functions = functions(file, kind, &exports, &defaults)?;
            Ok((Persistent::save(&ctx, functions), kind))
        })?;
        Ok((Self { functions, context, runtime, file: file.to_owned() }, kind))
    }

    fn call(&self, name: &str, arguments: &[String]) -> Result<Answer, String> {
        self.runtime.set_max_stack_size(STACK);
        self.context.with(|ctx| {
            let broken = |error: rquickjs::Error| format!("{}:1:1: {name} cannot be called: {error}", self.file);
            let function = self.function(&ctx, name).map_err(broken)?;
            progress::begin(defined_at(&function));
            let mut list = Args::new(ctx.clone(), arguments.len());
            for text in arguments {
                let argument = ctx.json_parse(text.as_str()).and_then(|argument| list.push_arg(argument));
                argument.catch(&ctx).map_err(|caught| self.told(name, &function, &caught))?;
            }
            match function.call_arg::<Script<'_>>(list).catch(&ctx) {
                Ok(value) => {
                    plain(&ctx, &value).map(Answer::Returned).map_err(|wrong| self.wrong_at(name, &function, &wrong))
                }
                Err(caught) => match refusal(&ctx, name, &caught) {
                    Some(Ok(refusal)) => Ok(Answer::Refused(refusal)),
                    Some(Err(wrong)) => Err(self.wrong_at(name, &function, &wrong)),
                    None => Err(self.told(name, &function, &caught)),
                },
            }
        })
    }

    fn function<'js>(&self, ctx: &Ctx<'js>, name: &str) -> rquickjs::Result<Function<'js>> {
        self.functions.clone().restore(ctx)?.get(name)
    }

    fn told(&self, name: &str, function: &Function<'_>, caught: &CaughtError<'_>) -> String {
        ErrorText::of(caught).told(&self.file, Some((name, &exported_at(function))))
    }

    fn wrong(&self, name: &str, wrong: &Wrong) -> String {
        self.context.with(|ctx| match self.function(&ctx, name) {
            Ok(function) => self.wrong_at(name, &function, wrong),
            Err(_) => wrong.problem.clone(),
        })
    }

    fn wrong_at(&self, name: &str, function: &Function<'_>, Wrong { path, problem }: &Wrong) -> String {
        let at = if path.as_str().is_empty() { "the answer" } else { path.as_str() };
        format!("{}:{}: {name} returns a wrong value: {at} {problem}", self.file, exported_at(function))
    }
}

/// Runs the prelude, and returns the default functions.
fn prelude<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
    let mut options = EvalOptions::default();
    options.filename = Some("kaos".to_owned());
    let prelude: Function<'js> = ctx.eval_with_options(PRELUDE, options)?;
    prelude.call((helpers::native(ctx)?,))
}

/// Evaluates the script as a module, and returns its exports.
fn evaluated<'js>(ctx: &Ctx<'js>, file: &str, source: &str) -> Result<Object<'js>, String> {
    let told = |caught: CaughtError<'_>| ErrorText::of(&caught).told(file, None);
    let module = Module::declare(ctx.clone(), file, source).catch(ctx).map_err(told)?;
    let (module, promise) = module.eval().catch(ctx).map_err(told)?;
    match promise.result::<Script<'js>>() {
        Some(result) => result.catch(ctx).map_err(told)?,
        None => {
            return Err(format!("{file}:1:1: the script awaits a Promise, and a policy does not wait: remove `await`"));
        }
    };
    module.namespace().catch(ctx).map_err(told)
}

/// Returns whether the script is a policy or an overlay. An overlay exports `amend`.
fn kind(file: &str, exports: &Object<'_>) -> Result<Kind, String> {
    let has = |name: &str| exports.get::<_, Script<'_>>(name).is_ok_and(|exported| !exported.is_undefined());
    if !has("amend") {
        return Ok(Kind::Policy);
    }
    for name in POLICY.into_iter().filter(|name| !OVERLAY.contains(name)) {
        if has(name) {
            return Err(format!(
                "{file}:1:1: the script exports `amend` and `{name}`, but an overlay changes the plan of another \
                 policy: remove one of the functions"
            ));
        }
    }
    Ok(Kind::Overlay)
}

/// Returns the script's functions. For each function that the script does not export, returns the default function.
fn functions<'js>(
    file: &str,
    kind: Kind,
    exports: &Object<'js>,
    defaults: &Object<'js>,
) -> Result<Object<'js>, String> {
    let names: &[&str] = match kind {
        Kind::Policy => &POLICY,
        Kind::Overlay => &OVERLAY,
    };
    let broken = |error: rquickjs::Error| format!("{file}:1:1: the exports cannot be read: {error}");
    let functions = Object::new(exports.ctx().clone()).map_err(broken)?;
    for &name in names {
        let exported: Script<'js> = exports.get(name).map_err(broken)?;
        let function = match (exported.is_undefined(), exported.is_function()) {
            (_, true) => exported,
            (false, false) => {
                return Err(format!(
                    "{file}:1:1: the export `{name}` is not a function: write `export function {name}`"
                ));
            }
            (true, _) => defaults.get(name).map_err(broken)?,
        };
        if function.is_undefined() {
            return Err(format!("{file}:1:1: the script does not export `{name}`: write `export function {name}`"));
        }
        functions.set(name, function).map_err(broken)?;
    }
    Ok(functions)
}

/// Returns the refusal that the function `name` threw, or `None` if it threw another value or may not refuse.
fn refusal<'js>(ctx: &Ctx<'js>, name: &str, caught: &CaughtError<'js>) -> Option<Result<Value, Wrong>> {
    const TAGS: [&str; 3] = ["invalid", "waiting", "unsupported"];
    let CaughtError::Value(thrown) = caught else { return None };
    let tag: String = thrown.as_object()?.get("tag").ok()?;
    if !["mapEnv", "translate", "amend"].contains(&name) || !TAGS.contains(&tag.as_str()) {
        return None;
    }
    Some(plain(ctx, thrown).map(Option::unwrap_or_default))
}
