//! Functions of the C library whose calls do not return or return twice, by name.

/// How control returns from a call, if the callee's name determines it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallKind {
    /// The name determines nothing.
    Ordinary,
    /// Ends the process or the thread without unwinding, in a callee that is usually not instrumented. `exit` is not
    /// one of these: it runs the handler that the runtime has registered.
    EndsThread,
    /// Saves an environment that a later `longjmp` restores; returns twice.
    Setjmp,
    /// Restores a saved environment; does not return.
    Longjmp,
    /// Returns in the child and in the parent.
    Vfork,
}

const ENDS_THREAD: [&str; 13] = [
    "abort",
    "_exit",
    "_Exit",
    "quick_exit",
    "pthread_exit",
    "thrd_exit",
    "__assert_fail",
    "__assert_perror_fail",
    "__assert",
    "_ZSt9terminatev",
    "__stack_chk_fail",
    "__chk_fail",
    "__fortify_fail",
];
const LONGJMP: [&str; 4] = ["longjmp", "_longjmp", "siglongjmp", "__longjmp_chk"];
const SETJMP: [&str; 4] = ["setjmp", "_setjmp", "sigsetjmp", "__sigsetjmp"];

/// The kind of calls of a function with this linkage name.
pub fn kind_of_call(name: &[u8]) -> CallKind {
    let is_one = |names: &[&str]| names.iter().any(|known| known.as_bytes() == name);
    if is_one(&ENDS_THREAD) {
        CallKind::EndsThread
    } else if is_one(&SETJMP) {
        CallKind::Setjmp
    } else if is_one(&LONGJMP) {
        CallKind::Longjmp
    } else if name == b"vfork" {
        CallKind::Vfork
    } else {
        CallKind::Ordinary
    }
}

/// Linkage names of functions that never return, and throw no exception either.
pub fn never_return_nor_throw() -> impl Iterator<Item = &'static str> {
    ["exit"].into_iter().chain(ENDS_THREAD).chain(LONGJMP)
}
