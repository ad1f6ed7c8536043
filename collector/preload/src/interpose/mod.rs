//! Functions of libc that the sampler interposes.
//!
//! They have two purposes: the program sees the state that it set up, and its threads and children are sampled, too.
//! All forward to the next definition of their name. The stub exports the names; its functions lead to these.

use pleach_wire::interposed::{COUNT, Function};

pub mod close;
pub mod delivery;
pub mod exec;
pub mod exit;
pub mod faults;
pub mod jumps;
pub mod limits;
pub mod masks;
pub mod memory;
mod sharing_child;
pub mod signals;
mod stack_handlers;
pub mod stacks;
pub mod thread_creation;
pub mod users;
pub mod waits;

/// Looks all functions up before a handler or a child of `vfork` can need them.
pub fn resolve() {
    exit::resolve();
    jumps::resolve();
    limits::resolve();
    masks::resolve();
    memory::resolve();
    signals::resolve();
    stacks::resolve();
    thread_creation::resolve();
    users::resolve();
    close::resolve();
    waits::resolve();
}

macro_rules! address {
    ($($module:ident::$name:ident)*) => {
        {
            let mut functions = [core::ptr::null(); COUNT];
            $(functions[Function::$name as usize] = $module::$name as *const ();)*
            functions
        }
    };
}

/// All functions, in the stub's order.
pub const FUNCTIONS: [*const (); COUNT] = address! {
    close::close close::close_range close::closefrom close::dup2 close::dup3
    exit::_exit exit::_Exit exit::dlclose exit::prctl exit::syscall
    jumps::__longjmp_chk jumps::_longjmp jumps::longjmp jumps::siglongjmp
    limits::prlimit limits::prlimit64 limits::setrlimit limits::setrlimit64
    masks::pthread_sigmask masks::signalfd masks::sigpending masks::sigprocmask masks::sigtimedwait masks::sigwait
    masks::sigwaitinfo
    memory::mmap memory::mmap64 memory::shmat
    signals::__sigaction signals::__sysv_signal signals::bsd_signal signals::sigaction signals::sigignore signals::signal
    signals::sigset signals::ssignal signals::sysv_signal
    stacks::sigaltstack
    thread_creation::pthread_create thread_creation::thrd_create
    users::seteuid users::setresuid users::setreuid users::setuid
    waits::epoll_pwait waits::epoll_pwait2 waits::ppoll waits::pselect waits::pthread_attr_setsigmask_np waits::ptrace
    waits::setcontext waits::sigsuspend waits::swapcontext
};

const _: () = {
    let mut function = 0;
    while function < COUNT {
        // SAFETY: only compared with null.
        assert!(!FUNCTIONS[function].is_null(), "a function is missing above");
        function += 1;
    }
};
