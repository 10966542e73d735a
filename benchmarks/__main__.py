"""The command line: one subcommand per table."""

import argparse

from . import core, dask, latent, linear, outofcore, structured


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="table")
    for table in (core, linear, structured, latent, outofcore, dask):
        name = table.__name__.rpartition(".")[2]
        table.add_arguments(commands.add_parser(name, help=table.__doc__, description=table.__doc__))
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":  # the memory of a fit is measured in a fresh process, which imports this file again
    main()
