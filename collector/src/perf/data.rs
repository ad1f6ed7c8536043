//! perf.data: container → records → reader.

use super::PerfError;
use super::attr::Event;
use super::container::Container;
use super::reader::Reader;
use super::records;
use super::report::{Damage, Format, Report};
use super::session::Session;
use std::path::Path;

/// Reads the contents of a file that begins as perf.data does.
pub(super) fn import(path: &Path, bytes: &[u8], mut session: Session) -> Result<Report, PerfError> {
    let damaged = |(at, what): (u64, &str)| PerfError::Damaged {
        path: path.to_owned(),
        damage: Damage {
            at,
            what: what.to_owned(),
            format: Format::PerfData,
        },
    };
    let container = Container::open(bytes, &mut session.report).map_err(damaged)?;
    let (data, offset) = (container.data, container.data_offset);
    let mut reader = Reader::new(container);
    if let Some(filter) = reader.filter() {
        return Err(PerfError::Filtered {
            path: path.to_owned(),
            filter,
        });
    }
    let mut report = std::mem::take(&mut session.report);
    let mut filtered = None;
    records::for_each(data, offset, &mut report, &mut |record, report| {
        std::mem::swap(report, &mut session.report);
        session.reached(record.at);
        reader.record(record, &mut session);
        filtered = filtered.or_else(|| reader.filter());
        std::mem::swap(report, &mut session.report);
    });
    session.report = report;
    if let Some(filter) = filtered {
        return Err(PerfError::Filtered {
            path: path.to_owned(),
            filter,
        });
    }
    reader.finish(&mut session);
    let has_branches = |event: &Event| event.sample_type & super::attr::sample_type::BRANCH_STACK != 0;
    let any = reader.container.events.iter().any(has_branches);
    let report = session.finish();
    if any {
        return Ok(report);
    }
    Err(match report.damage {
        Some(damage) => PerfError::Damaged {
            path: path.to_owned(),
            damage,
        },
        None => PerfError::NoBranches { path: path.to_owned() },
    })
}
