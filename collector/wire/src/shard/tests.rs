use super::*;

fn burst(buffer: &mut [u8]) -> Vec<u8> {
    let branches = [(0x401000, 0x400ff0), (0x401000, 0x7fff_0000_0000), (u64::MAX, 0)];
    let head = BurstHead {
        start: 0x400fff,
        end: 7,
        is_isolated: true,
        branches: 3,
        system_call: 2,
        thread: 9,
        ..BurstHead::default()
    };
    let mut e = Encoder::new(buffer);
    e.bytes(&head.to_bytes());
    let mut last = head.start;
    for (from, to) in branches {
        e.delta(last, from);
        e.delta(from, to);
        last = to;
    }
    let values = [(1, 0, 24), (2, 0x4000, u64::MAX)].map(|(branch, at, value)| RawValue { branch, at, value });
    let mut last = 0;
    for observed in values {
        e.delta(last, observed.branch.into());
        e.delta(0, observed.at);
        e.delta(0, observed.value);
        last = observed.branch.into();
    }
    let frame = e.finish(FrameKind::Burst).unwrap().to_vec();
    assert_eq!(
        Frames::new(&frame).next(),
        Some(Frame::Burst(RawBurst {
            head,
            branches: branches.to_vec(),
            values: values.to_vec(),
        }))
    );
    frame
}

#[test]
fn damage_costs_only_the_damaged_frame() {
    let frame = burst(&mut [0; 256]);
    for cut in 0..frame.len() {
        let mut stream = frame.clone();
        stream.extend(&frame[..cut]);
        stream.extend(&frame);
        let mut frames = Frames::new(&stream);
        assert_eq!(frames.by_ref().count(), 2, "cut at {cut}");
        assert_eq!(frames.damaged(), cut);
        assert_eq!(Frames::new(&stream[..frame.len() + cut]).count(), 1);
    }
}

#[test]
fn zeros_behind_a_frame_are_space_that_was_freed() {
    let frame = burst(&mut [0; 256]);
    let freed = vec![0; 5000];
    let stream = [&freed[..], &frame, &freed, &frame].concat();
    let mut frames = Frames::new(&stream);
    assert_eq!((frames.by_ref().count(), frames.damaged()), (2, 0));
    // Zeros behind damage are damaged.
    let stream = [&frame[..], &[7], &freed, &frame].concat();
    let mut frames = Frames::new(&stream);
    assert_eq!((frames.by_ref().count(), frames.damaged()), (2, 5001));
}

#[test]
fn any_flipped_bit_is_noticed() {
    let frame = burst(&mut [0; 256]);
    for bit in 0..frame.len() * 8 {
        let mut broken = frame.clone();
        broken[bit / 8] ^= 1 << (bit % 8);
        // The fourth byte is reserved.
        assert_eq!(Frames::new(&broken).count(), usize::from(bit / 8 == 3), "bit {bit}");
    }
}

#[test]
fn overflow_is_reported() {
    let mut buffer = [0; FRAME_HEADER + 4];
    let mut e = Encoder::new(&mut buffer);
    e.u64(1);
    assert!(e.finish(FrameKind::Final).is_none());
    assert!(Encoder::new(&mut []).finish(FrameKind::Final).is_none());
}
