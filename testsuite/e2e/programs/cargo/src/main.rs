//! Counts words of generated text. The first argument is how many.

use derive::Named;
use words::{Counter, Generator};

#[derive(Named)]
struct Report;

fn main() {
    let count: u64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1_000);
    let mut counter = Counter::new();
    for word in Generator::new(count) {
        counter.add(word);
    }
    println!("{} {} {}", Report::NAME, counter.total(), counter.most());
    println!("nightly {}", env!("IS_NIGHTLY"));
}
