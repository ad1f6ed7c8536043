//! The paper's model of the overhead (§5.3.2): a message interrupts the program, with others, and is folded into the
//! profile. The program takes one cycle for an instruction here; the paper simulates a processor.

/// Cycles to process a message: an interrupt's share included.
pub const CYCLES_PER_MESSAGE: f64 = 30.0;
/// Cycles of an interrupt.
pub const CYCLES_PER_INTERRUPT: f64 = 214.0;
/// Least messages that an interrupt processes.
pub const MESSAGES_PER_INTERRUPT: f64 = 100.0;

/// Overhead as a fraction of the program's cycles. `messages`: for each event; `instructions`: for each event.
pub fn overhead(messages: f64, instructions: f64) -> f64 {
    CYCLES_PER_MESSAGE * messages / instructions
}

/// The same where an interrupt processes only so many messages, at least one.
pub fn overhead_of_small_interrupts(messages: f64, instructions: f64, messages_per_interrupt: f64) -> f64 {
    let interrupt = |messages: f64| CYCLES_PER_INTERRUPT / messages.max(1.0);
    let processing = CYCLES_PER_MESSAGE - interrupt(MESSAGES_PER_INTERRUPT);
    (processing + interrupt(messages_per_interrupt)) * messages / instructions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paper_s_figures_come_out() {
        // gcc (§5.4): 17 million instructions with 4 million events; one message for 256 events costs 2.8 %.
        let instructions = 17.0 / 4.0;
        let found = overhead(1.0 / 256.0, instructions);
        assert!((found - 0.0276).abs() < 1e-4, "{found}");
        let same = overhead_of_small_interrupts(1.0 / 256.0, instructions, MESSAGES_PER_INTERRUPT);
        assert!((same - found).abs() < 1e-12);
        // An interrupt for each message costs eight times as much.
        let each = overhead_of_small_interrupts(1.0 / 256.0, instructions, 1.0) / found;
        assert!((each - 8.06).abs() < 0.01, "{each}");
    }
}
