use words::{Counter, Generator};

#[test]
fn some_word_is_the_most_frequent() {
    let mut counter = Counter::new();
    Generator::new(5_000_000).for_each(|word| counter.add(word));
    assert!(counter.most() > 1);
}
