//! Tables of what streams showed.

use super::convergence::{self, mean_error};
use super::curve::{Curve, Kind, Point, RATES, TABLE_BITS};
use super::overhead::{overhead, overhead_of_small_interrupts};
use super::progress::{self, Progress};
use super::stream::{LoadStream, Stream};
use pleach_collector::stream::Generator;
use pleach_harness::table::{Cell, Section, Table};
use std::num::NonZeroU64;

/// The overhead at which all are compared: the paper's 256.
const COMPARED: f64 = 1.0 / 256.0;

/// The error that the paper calls tolerable (§5.4).
const TOLERABLE: f64 = 0.05;

/// Tables: the streams, the curves in the mean over all programs, and every program at equal overhead.
pub fn sections(streams: &[Stream]) -> Vec<Section> {
    let curves_of: Vec<_> = of_streams(streams, |stream| (&stream.workload, &stream.curves));
    let progress_of: Vec<_> = of_streams(streams, |stream| (&stream.workload, &stream.progress));
    let mut sections = vec![
        Section::new("streams", "", inputs(streams)),
        Section::new(
            "curves",
            "Edges and call targets at once: means over the programs (messages per 1000 events; errors and overlaps in %)",
            curves(streams),
        ),
        Section::new(
            "equal_overhead",
            "Error in % where one message is sent for 256 events",
            equal_overhead(&curves_of),
        ),
        Section::new(
            "cycles",
            "Overhead by the paper's model, 30 cycles for a message, in % of the program's cycles (one for an instruction): \
             means over the programs at r = 256",
            cycles(streams),
        ),
        Section::new(
            "table_sizes",
            "H[P256]_n, from 0: sizes n of the table",
            table_sizes(streams),
        ),
        Section::new(
            "room",
            "Taken branches in a file of an eighth of the size: overlap with all of them in %",
            rooms(streams),
        ),
    ];
    sections.extend(progress_sections(&progress_of));
    sections
}

/// Tables of what programs load: the streams, every program at equal overhead, and errors while streams go on.
pub fn load_sections(streams: &[LoadStream]) -> Vec<Section> {
    let curves_of: Vec<_> = of_streams(streams, |stream| (&stream.workload, &stream.curves));
    let progress_of: Vec<_> = of_streams(streams, |stream| (&stream.workload, &stream.progress));
    let mut table = Table::new([
        ("workload", "workload"),
        ("instructions", "instructions"),
        ("events", "loads"),
        ("distinct", "different loads and values"),
    ]);
    for stream in streams {
        table.push([
            stream.workload.as_str().into(),
            stream.instructions.into(),
            stream.events.into(),
            stream.distinct.into(),
        ]);
    }
    let mut sections = vec![
        Section::new("loads", "Values of loads", table),
        Section::new(
            "equal_overhead",
            "Error in % where one message is sent for 256 loads",
            equal_overhead(&curves_of),
        ),
    ];
    sections.extend(progress_sections(&progress_of));
    sections
}

/// A program's name, and its figures of one kind.
type Of<'s, T> = (&'s str, &'s [T]);

fn of_streams<S, T>(streams: &[S], of: fn(&S) -> (&String, &Vec<T>)) -> Vec<Of<'_, T>> {
    let named = streams.iter().map(of);
    named.map(|(name, values)| (name.as_str(), values.as_slice())).collect()
}

fn progress_sections(streams: &[Of<'_, Progress>]) -> [Section; 2] {
    [
        Section::new(
            "error_by_events",
            "Error in % after so many events of the stream",
            errors_by_events(streams),
        ),
        Section::new(
            "until_tolerable",
            "Events until the error is at most 5 %, and until it remains so; the whole stream",
            until_tolerable(streams),
        ),
    ]
}

/// Every fifth checkpoint, three times the events of the one before, and the last.
fn errors_by_events(streams: &[Of<'_, Progress>]) -> Table {
    let names = progress::Kind::ALL.map(|kind| (kind.name(), kind.name()));
    let mut table = Table::new(
        [("workload", "workload"), ("events", "events")]
            .into_iter()
            .chain(names),
    );
    for (workload, kinds) in streams {
        let points = kinds.first().map_or(&[][..], |of| &of.checkpoints);
        for (at, point) in points.iter().enumerate() {
            if at % 5 != 0 && at + 1 != points.len() {
                continue;
            }
            let errors = kinds.iter().map(|of| Cell::Number(of.checkpoints[at].error * 100.0, 2));
            let first = [(*workload).into(), (point.events as u64).into()];
            table.push(first.into_iter().chain(errors));
        }
    }
    table
}

fn until_tolerable(streams: &[Of<'_, Progress>]) -> Table {
    let mut table = Table::new([
        ("workload", "workload"),
        ("compressor", "compressor"),
        ("first", "first within 5 %"),
        ("remains", "remains within"),
        ("error", "error, %"),
        ("messages", "messages for 1000 events"),
    ]);
    for (workload, kinds) in streams {
        for of in *kinds {
            let last = of.last();
            let messages = |point: &progress::Checkpoint| point.messages / point.events as f64 * 1e3;
            table.push([
                (*workload).into(),
                of.kind.name().into(),
                of.first_within(TOLERABLE).map(|events| events as u64).into(),
                of.remains_within(TOLERABLE).map(|events| events as u64).into(),
                Cell::Number(last.map_or(f64::NAN, |point| point.error * 100.0), 2),
                Cell::Number(last.map_or(f64::NAN, messages), 2),
            ]);
        }
    }
    table
}

fn inputs(streams: &[Stream]) -> Table {
    let mut table = Table::new([
        ("workload", "workload"),
        ("bursts", "bursts"),
        ("branches", "taken branches"),
        ("events", "events"),
        ("distinct", "different events"),
    ]);
    for stream in streams {
        table.push([
            stream.workload.as_str().into(),
            stream.bursts.into(),
            stream.branches.into(),
            stream.events.into(),
            stream.distinct.into(),
        ]);
    }
    table
}

/// The mean of the values that are numbers.
fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let known: Vec<f64> = values.filter(|value| !value.is_nan()).collect();
    known.iter().sum::<f64>() / known.len() as f64
}

fn curves(streams: &[Stream]) -> Table {
    let mut table = Table::new([
        ("compressor", "compressor"),
        ("rate", "r"),
        ("messages", "messages"),
        ("messages_second", "with A_16"),
        ("error", "error"),
        ("error_most", "most"),
        ("overlap", "overlap"),
    ]);
    for kind in Kind::ALL {
        for (at, rate) in RATES.into_iter().enumerate() {
            let curves = streams.iter().flat_map(|stream| &stream.curves);
            let of_kind = curves.filter(|curve| curve.kind == kind);
            let points: Vec<&Point> = of_kind.filter_map(|curve| curve.points.get(at)).collect();
            let of = |value: fn(&Point) -> f64| mean(points.iter().map(|point| value(point)));
            table.push([
                kind.name().into(),
                rate.into(),
                Cell::Number(of(|p| p.messages) * 1e3, 2),
                Cell::Number(of(|p| p.second) * 1e3, 2),
                Cell::Number(of(|p| p.error) * 100.0, 3),
                Cell::Number(points.iter().map(|p| p.error).fold(f64::NAN, f64::max) * 100.0, 3),
                Cell::Number(of(|p| p.overlap) * 100.0, 2),
            ]);
        }
    }
    table
}

fn equal_overhead(streams: &[Of<'_, Curve>]) -> Table {
    let columns = Kind::ALL.map(|kind| (kind.name(), kind.name()));
    let mut table = Table::new([("workload", "workload")].into_iter().chain(columns));
    let error = |curve: &Curve| curve.error_at(COMPARED) * 100.0;
    for (workload, curves) in streams {
        let cells = curves.iter().map(|curve| Cell::Number(error(curve), 3));
        table.push([Cell::from(*workload)].into_iter().chain(cells));
    }
    let means = (0..Kind::ALL.len()).map(|kind| {
        let curves = streams.iter().filter_map(|(_, curves)| curves.get(kind));
        Cell::Number(mean(curves.map(error)), 3)
    });
    table.push([Cell::from("mean")].into_iter().chain(means));
    table
}

/// Instructions for each event.
fn instructions_per_event(stream: &Stream) -> f64 {
    stream.instructions as f64 / stream.events as f64
}

/// The rate at which overheads are compared.
const CYCLES_RATE: u64 = 256;

fn cycles(streams: &[Stream]) -> Table {
    let mut table = Table::new([
        ("compressor", "compressor"),
        ("overhead", "overhead"),
        ("overhead_most", "most"),
        ("overhead_second", "with A_16"),
        ("overhead_single", "an interrupt for each message"),
        ("error", "error"),
    ]);
    for kind in Kind::ALL {
        let points: Vec<(Point, f64)> = streams
            .iter()
            .flat_map(|stream| stream.curves.iter().map(move |curve| (stream, curve)))
            .filter(|(_, curve)| curve.kind == kind)
            .filter_map(|(stream, curve)| {
                let point = curve.points.iter().find(|point| point.rate == CYCLES_RATE)?;
                Some((*point, instructions_per_event(stream)))
            })
            .collect();
        let percent = |of: &dyn Fn(&Point, f64) -> f64| -> Vec<f64> {
            points.iter().map(|(point, each)| of(point, *each) * 100.0).collect()
        };
        let plain = percent(&|p, each| overhead(p.messages, each));
        let second = percent(&|p, each| overhead(p.second, each));
        let single = percent(&|p, each| overhead_of_small_interrupts(p.messages, each, 1.0));
        let error = percent(&|p, _| p.error);
        table.push([
            kind.name().into(),
            Cell::Number(mean(plain.iter().copied()), 3),
            Cell::Number(plain.iter().copied().fold(f64::NAN, f64::max), 3),
            Cell::Number(mean(second.into_iter()), 3),
            Cell::Number(mean(single.into_iter()), 3),
            Cell::Number(mean(error.into_iter()), 3),
        ]);
    }
    table
}

fn table_sizes(streams: &[Stream]) -> Table {
    let mut table = Table::new([
        ("workload", "workload"),
        ("entries", "n"),
        ("messages", "messages for 1000 events"),
        ("messages_second", "with A_16"),
        ("overhead", "overhead, %"),
        ("error", "error, %"),
        ("overlap", "overlap, %"),
    ]);
    for stream in streams {
        for (bits, point) in TABLE_BITS.iter().zip(&stream.table_sizes) {
            table.push([
                stream.workload.as_str().into(),
                (1_u64 << bits).into(),
                Cell::Number(point.messages * 1e3, 2),
                Cell::Number(point.second * 1e3, 2),
                Cell::Number(overhead(point.messages, instructions_per_event(stream)) * 100.0, 3),
                Cell::Number(point.error * 100.0, 3),
                Cell::Number(point.overlap * 100.0, 2),
            ]);
        }
    }
    table
}

fn rooms(streams: &[Stream]) -> Table {
    let mut table = Table::new([
        ("workload", "workload"),
        ("whole", "bytes of all"),
        ("rate", "r"),
        ("windows", "windows"),
        ("bursts", "whole bursts"),
    ]);
    for stream in streams {
        table.push([
            stream.workload.as_str().into(),
            stream.compact.whole.into(),
            Cell::Number(stream.compact.rate, 0),
            Cell::Number(stream.compact.windows * 100.0, 2),
            Cell::Number(stream.compact.bursts * 100.0, 2),
        ]);
    }
    table
}

/// The paper's Monte-Carlo experiment (§3.3, figure 4) with so many repetitions: events until the mean error is 4 %.
pub fn convergence(experiments: u64) -> Section {
    let mut table = Table::new([
        ("compressor", "compressor"),
        ("events", "events until 4 %"),
        ("paper", "paper"),
    ]);
    let mut generator = Generator::new(11);
    for kind in convergence::Kind::ALL {
        let rate = NonZeroU64::MIN.saturating_add(9);
        let errors: Vec<(u64, f64)> = (2..=16)
            .map(|thousands| thousands * 1000)
            .map(|length| (length, mean_error(kind, rate, length, experiments, &mut generator)))
            .collect();
        let (name, paper) = match kind {
            convergence::Kind::Random => ("R", Some(12_000)),
            convergence::Kind::Periodic => ("P", None),
            convergence::Kind::CountedRandom => ("CR", None),
            convergence::Kind::SplitRandom => ("H[R]", Some(12_000)),
            convergence::Kind::SplitPeriodic => ("H[P]", Some(4600)),
            convergence::Kind::SplitCountedRandom => ("H[CR]", Some(4600)),
        };
        table.push([name.into(), crossing(&errors, 4.0).into(), paper.into()]);
    }
    let heading = format!("Monte Carlo, r = 10, {experiments} experiments for each length");
    Section::new("convergence", heading, table)
}

/// Where errors fall below a bound: they go with the root of the length, so the inverse of their square is
/// interpolated.
fn crossing(errors: &[(u64, f64)], bound: f64) -> Option<u64> {
    let pair = errors.windows(2).find(|pair| pair[1].1 <= bound)?;
    let [before, after, at] = [pair[0].1, pair[1].1, bound].map(|error| error.powi(-2));
    let part = ((at - before) / (after - before)).max(0.0);
    Some(pair[0].0 + ((pair[1].0 - pair[0].0) as f64 * part).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::super::CompactRecording;
    use super::*;

    #[test]
    fn tables_are_readable() {
        let stream = |workload: &str, scale: f64| Stream {
            workload: workload.to_owned(),
            bursts: 1234,
            branches: 1_234_567,
            events: 3_456_789,
            distinct: 987,
            instructions: 14_000_000,
            table_sizes: TABLE_BITS
                .map(|bits| Point {
                    rate: 256,
                    messages: 1.0 / 256.0,
                    second: 0.7 / 256.0,
                    error: scale / f64::from(bits),
                    overlap: 1.0 - scale / f64::from(bits * 10),
                })
                .to_vec(),
            curves: Kind::ALL
                .iter()
                .zip(1..)
                .map(|(kind, i)| Curve {
                    kind: *kind,
                    points: RATES
                        .map(|rate| Point {
                            rate,
                            messages: 1.0 / rate as f64,
                            second: 0.7 / rate as f64,
                            error: scale * (rate as f64).sqrt() / f64::from(i) / 1e3,
                            overlap: 1.0 - scale / 1e2,
                        })
                        .to_vec(),
                })
                .collect(),
            progress: progress::Kind::ALL
                .map(|kind| Progress {
                    kind,
                    checkpoints: (1..=7)
                        .map(|at| progress::Checkpoint {
                            events: at * 10_000,
                            error: scale * 0.2 / at as f64,
                            messages: at as f64 * 40.0,
                        })
                        .collect(),
                })
                .to_vec(),
            compact: CompactRecording {
                whole: 54_321,
                rate: 16.0,
                windows: 0.97,
                bursts: 0.9,
            },
        };
        let sections = sections(&[stream("lua", 1.0), stream("zlib", f64::NAN), stream("sqlite", 2.0)]);
        let text: Vec<String> = sections.iter().map(Section::to_string).collect();
        insta::assert_snapshot!(text.join("\n\n"));
    }

    #[test]
    fn the_bound_is_found() {
        let error = |length: u64| (length, 400.0 / (length as f64).sqrt());
        assert_eq!(crossing(&[error(4000), error(9000), error(16000)], 4.0), Some(10_000));
        assert_eq!(crossing(&[error(4000)], 4.0), None);
    }
}
