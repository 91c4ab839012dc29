//! The work queue: at least once, and acknowledgements are not fenced: whoever sends one removes the message,
//! whoever holds it now.

/// One job message.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Job {
    pub(crate) id: u8,
    /// The worker it was delivered to, if it is not waiting.
    pub(crate) taken_by: Option<u8>,
}

/// The messages, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Queue {
    jobs: Vec<Job>,
    next_id: u8,
}

impl Queue {
    pub(crate) fn publish(&mut self) {
        self.next_id += 1;
        self.jobs.push(Job { id: self.next_id, taken_by: None });
    }

    pub(crate) fn published(&self) -> u8 {
        self.next_id
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    pub(crate) fn waiting(&self) -> Option<u8> {
        self.jobs.iter().find(|job| job.taken_by.is_none()).map(|job| job.id)
    }

    pub(crate) fn contains(&self, id: u8) -> bool {
        self.jobs.iter().any(|job| job.id == id)
    }

    pub(crate) fn take(&mut self, id: u8, worker: u8) {
        self.set(id, Some(worker));
    }

    /// The lease ran out, or somebody sent a NAK.
    pub(crate) fn redeliver(&mut self, id: u8) {
        self.set(id, None);
    }

    fn set(&mut self, id: u8, taken_by: Option<u8>) {
        for job in self.jobs.iter_mut().filter(|job| job.id == id) {
            job.taken_by = taken_by;
        }
    }

    pub(crate) fn remove(&mut self, id: u8) {
        self.jobs.retain(|job| job.id != id);
    }

    pub(crate) fn taken(&self) -> impl Iterator<Item = (u8, u8)> {
        self.jobs.iter().filter_map(|job| Some((job.id, job.taken_by?)))
    }
}
