//! A run queue for each CPU, served in turn. A task's data is the number of its CPU, and the task stays on
//! that CPU.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

use ostd::cpu::{CpuId, PinCurrentCpu, num_cpus};
use ostd::sync::SpinLock;
use ostd::task::scheduler::{EnqueueFlags, LocalRunQueue, Scheduler, UpdateFlags, inject_scheduler};
use ostd::task::{Task, disable_preempt};

struct InTurn(Vec<SpinLock<Queue>>);

#[derive(Default)]
struct Queue {
    current: Option<Arc<Task>>,
    waiting: VecDeque<Arc<Task>>,
}

/// Installs this scheduler in OSTD.
pub(crate) fn start() {
    let queues = (0..num_cpus()).map(|_| SpinLock::new(Queue::default())).collect();
    inject_scheduler(Box::leak(Box::new(InTurn(queues))));
}

impl Scheduler for InTurn {
    fn enqueue(&self, task: Arc<Task>, _: EnqueueFlags) -> Option<CpuId> {
        let cpu = *task.data().downcast_ref::<usize>().expect("every task is started by the crew");
        task.schedule_info().cpu.set_anyway(CpuId::try_from(cpu).expect("a CPU"));
        self.0[cpu].disable_irq().lock().waiting.push_back(task);
        None
    }

    fn local_rq_with(&self, look: &mut dyn FnMut(&dyn LocalRunQueue)) {
        let pin = disable_preempt();
        look(&*self.0[u32::from(pin.current_cpu()) as usize].disable_irq().lock());
    }

    fn mut_local_rq_with(&self, change: &mut dyn FnMut(&mut dyn LocalRunQueue)) {
        let pin = disable_preempt();
        change(&mut *self.0[u32::from(pin.current_cpu()) as usize].disable_irq().lock());
    }
}

impl LocalRunQueue for Queue {
    fn current(&self) -> Option<&Arc<Task>> {
        self.current.as_ref()
    }

    fn update_current(&mut self, flags: UpdateFlags) -> bool {
        flags != UpdateFlags::Tick && !self.waiting.is_empty()
    }

    fn try_pick_next(&mut self) -> Option<&Arc<Task>> {
        let next = self.waiting.pop_front()?;
        if let Some(previous) = self.current.replace(next) {
            self.waiting.push_back(previous);
        }
        self.current.as_ref()
    }

    fn dequeue_current(&mut self) -> Option<Arc<Task>> {
        self.current.take()
    }
}
