"""`python -m campaign [kills inputs flips disk] --trials 1000`: see docs/campaign.md."""

import os

# Before numpy and torch are imported: a process that is forked must not have threads.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"
for _name in ("MANICAP_DATA", "MANICAP_RUNS", "MANICAP_REPORTS"):
    os.environ.pop(_name, None)
os.environ.update(COLUMNS="200", MPLBACKEND="agg", SOURCE_DATE_EPOCH="0", MANICAP_CACHE="cache")

if __name__ == "__main__":
    from campaign.command import main

    main()
