"""Workers that are told to end."""

from tinygrad_ext.utils import data


def test_workers_end_by_pytorchs_name_for_it():
    rows = iter(data.DataLoader(range(12), batch_size=3, num_workers=2))
    next(rows)
    processes = [worker.process for worker in rows._workers]
    rows._shutdown_workers()
    assert len(processes) == 2 and not any(process.is_alive() for process in processes)
    rows._shutdown_workers()
