"""One cell after another, in this process."""

from collections.abc import Iterator, Sequence

from manicap.bench.cell import Job, Outcome, Work


class SerialExecutor:
    num_workers = 1

    def run(self, work: Work, jobs: Sequence[Job]) -> Iterator[Outcome]:
        for job in jobs:
            yield work(job)
