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

/// The kind of calls of a function with this linkage name.
pub fn kind_of_call(name: &[u8]) -> CallKind {
    match name {
        b"abort" | b"_exit" | b"_Exit" | b"quick_exit" | b"pthread_exit" | b"thrd_exit" => CallKind::EndsThread,
        b"__assert_fail" | b"__assert_perror_fail" | b"__assert" | b"_ZSt9terminatev" => CallKind::EndsThread,
        b"__stack_chk_fail" | b"__chk_fail" | b"__fortify_fail" => CallKind::EndsThread,
        b"setjmp" | b"_setjmp" | b"sigsetjmp" | b"__sigsetjmp" => CallKind::Setjmp,
        b"longjmp" | b"_longjmp" | b"siglongjmp" | b"__longjmp_chk" => CallKind::Longjmp,
        b"vfork" => CallKind::Vfork,
        _ => CallKind::Ordinary,
    }
}
