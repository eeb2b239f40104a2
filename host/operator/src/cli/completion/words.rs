//! Reads an incomplete command line, and finds the flags on which the candidates depend.

use std::ffi::OsString;

use super::super::{HOME, connection::Connection};

/// The values of flags in an incomplete command line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Words {
    kubeconfig: Option<String>,
    context: Option<String>,
    /// The namespace of the objects; `None` for the namespace of the context.
    pub(super) namespace: Option<String>,
    operator_namespace: Option<String>,
    /// Whether the user wants the objects of all namespaces.
    pub(super) all_namespaces: bool,
}

impl Words {
    /// Reads the flags from the words of the command line. Ignores the last word, which the user is still typing.
    pub(super) fn of(words: &[OsString]) -> Self {
        let complete = words.split_last().map_or(&[][..], |(_, before)| before);
        let texts: Vec<_> = complete.iter().map(|word| word.to_string_lossy()).collect();
        let value = |names: &[&str]| {
            let of_pair = texts.windows(2).filter(|pair| names.contains(&&*pair[0])).map(|pair| pair[1].to_string());
            let joined = texts.iter().filter_map(|word| {
                let (name, value) = word.split_once('=')?;
                names.contains(&name).then(|| value.to_owned())
            });
            of_pair.chain(joined).last()
        };
        Self {
            kubeconfig: value(&["--kubeconfig"]),
            context: value(&["--context"]),
            namespace: value(&["-n", "--namespace"]),
            operator_namespace: value(&["--operator-namespace"]),
            all_namespaces: texts.iter().any(|word| word == "-A" || word == "--all-namespaces"),
        }
    }

    /// Returns the cluster that the flags on the command line name.
    pub(super) fn connection(&self) -> Connection {
        Connection::new(self.kubeconfig.as_ref().map(Into::into), self.context.clone())
    }

    /// Returns the operator's namespace.
    pub(super) fn home(&self) -> String {
        self.operator_namespace.clone().unwrap_or_else(|| HOME.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_before_the_typed_word_are_read() {
        let words = |line: &str| Words::of(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        let told = words("kaos-operator why -n a --context=c --kubeconfig k -n b widget/");
        assert_eq!((told.namespace.as_deref(), told.context.as_deref()), (Some("b"), Some("c")));
        assert_eq!(told.kubeconfig.as_deref(), Some("k"));
        assert_eq!(words("kaos-operator why -n te").namespace, None, "the user still types it");
        assert!(words("kaos-operator status -A ").all_namespaces);
    }
}
