"""`python -m spark_ckpt`: the program `spark-ckpt`, where the script is not on the path."""

from __future__ import annotations

from spark_ckpt.cli.main import main

if __name__ == "__main__":
    main(prog_name="spark-ckpt")
