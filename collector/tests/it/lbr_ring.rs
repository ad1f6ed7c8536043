//! The reader of buffers against a kernel that is played: nothing is read twice, half or in the wrong order, whatever
//! wraps around, is lost, or is damaged.

use crate::lbr_kernel::{PAGE, buffer, record};
use memmap2::MmapMut;
use pleach_collector::engines::lbr::ring::{Record, Ring, RingError};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    /// A record whose body has this number of words.
    Write(u8),
    /// Bytes behind the head, which the reader must not see.
    Torn(Vec<u8>),
    Drain,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0u8..20).prop_map(Step::Write),
        1 => prop::collection::vec(any::<u8>(), 1..16).prop_map(Step::Torn),
        2 => Just(Step::Drain),
    ]
}

fn drained(ring: &Ring) -> Result<Vec<Record>, RingError> {
    let mut records = Vec::new();
    ring.drain(|record| records.push(record)).map(|()| records)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// All records that fit are read once and in order; the others are reported as lost.
    #[test]
    fn all_that_fits_is_read(steps in prop::collection::vec(step(), 0..200), size in 8u32..11, before in 0u64..1 << 12) {
        // At the end of the counter's first round, too.
        for before in [before * 8, (1u64 << 40) - before * 8] {
            let (mut kernel, ring) = buffer(1 << size, before);
            let (mut written, mut read, mut lost) = (Vec::new(), Vec::new(), 0);
            for (number, step) in steps.iter().enumerate() {
                match step {
                    Step::Write(words) => {
                        let body = vec![number as u8; usize::from(*words) * 8];
                        match kernel.write(9, number as u16, &body) {
                            true => written.push((number as u16, body)),
                            false => lost += 1,
                        }
                    }
                    Step::Torn(bytes) if kernel.free_space() >= bytes.len() as u64 => kernel.scribble(kernel.head(), bytes),
                    Step::Torn(_) => {}
                    Step::Drain => read.extend(drained(&ring).unwrap()),
                }
            }
            read.extend(drained(&ring).unwrap());
            // What was lost last is told with the next record.
            prop_assert!(kernel.write(9, u16::MAX, &[]));
            read.extend(drained(&ring).unwrap());
            written.push((u16::MAX, Vec::new()));

            let told: u64 = read.iter().filter(|record| record.kind == 2)
                .map(|record| u64::from_ne_bytes(record.body[8..16].try_into().unwrap())).sum();
            prop_assert_eq!(told, lost);
            let samples = read.iter().filter(|record| record.kind == 9);
            prop_assert_eq!(samples.map(|record| (record.misc, record.body.clone())).collect::<Vec<_>>(), written);
            let mut at = before;
            for record in &read {
                prop_assert_eq!(record.at, at);
                at += 8 + record.body.len() as u64;
            }
            prop_assert_eq!((drained(&ring).unwrap().len(), kernel.free_space()), (0, 1 << size));
        }
    }

    /// Whatever is in the buffer: no panic, no endless loop, and what comes later is read.
    #[test]
    fn noise_is_survived(noise in prop::collection::vec(any::<u8>(), 256), length in 0u64..600) {
        let (mut kernel, ring) = buffer(256, 0);
        kernel.scribble(0, &noise);
        kernel.publish(length);
        let mut bytes = 0;
        let done = ring.drain(|record| bytes += 8 + record.body.len() as u64);
        prop_assert!(bytes <= 256 && (done.is_err() || bytes == length));
        kernel.publish(length);
        prop_assert!(kernel.write(9, 7, &[1; 16]));
        prop_assert_eq!(drained(&ring).unwrap().len(), 1);
    }
}

#[test]
fn damage_is_named_and_skipped() {
    let (mut kernel, ring) = buffer(256, 0);
    kernel.publish(264);
    assert_eq!(drained(&ring), Err(RingError::Overwritten));
    kernel.publish(8);
    assert_eq!(drained(&ring), Err(RingError::Backwards));
    for (size, says) in [(0u16, 64), (7, 64), (72, 64), (8, 4)] {
        let mut bytes = record(9, 0, &[0; 56]);
        bytes[6..8].copy_from_slice(&size.to_ne_bytes());
        kernel.scribble(kernel.head(), &bytes);
        kernel.publish(kernel.head() + says);
        assert_eq!(drained(&ring), Err(RingError::Size), "size {size}");
        kernel.publish(kernel.head().next_multiple_of(8));
        let _ = drained(&ring);
    }
    assert!(kernel.write(9, 5, b"whole..."));
    assert_eq!(drained(&ring).unwrap()[0].body, b"whole...");
}

#[test]
fn maps_of_other_sizes_are_refused() {
    let ring = |length, offset| Ring::new(MmapMut::map_anon(length).unwrap().into(), offset);
    assert!(ring(PAGE + 4096, PAGE).is_some());
    for (length, offset) in [
        (PAGE, PAGE),
        (PAGE + 4095, PAGE),
        (PAGE + 4, PAGE),
        (4096 + 16, 16),
        (100, PAGE),
    ] {
        assert!(ring(length, offset).is_none(), "{length} bytes from {offset} on");
    }
}

/// A kernel on another processor, while we read.
#[test]
fn reader_and_writer_run_at_the_same_time() {
    const RECORDS: u64 = 200_000;
    let (mut kernel, ring) = buffer(1 << 12, 0);
    let writer = std::thread::spawn(move || {
        for number in 0..RECORDS {
            // As many words as the number's last digit, all of them the number.
            let body: Vec<u8> = (0..=number % 10).flat_map(|_| number.to_ne_bytes()).collect();
            while kernel.free_space() < 8 + body.len() as u64 {
                std::thread::yield_now();
            }
            assert!(kernel.write(9, 0, &body));
        }
    });
    let mut next = 0;
    while next < RECORDS {
        ring.drain(|record| {
            assert_eq!(record.body.len() as u64, (next % 10 + 1) * 8);
            assert!(record.body.chunks(8).all(|word| word == next.to_ne_bytes()));
            next += 1;
        })
        .unwrap();
        std::thread::yield_now();
    }
    writer.join().unwrap();
}
