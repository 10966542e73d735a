"""What can be asked for on the command line. Letters mean what they mean to LIBLINEAR."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from typing import Any

# LIBLINEAR's -s: (task, loss, multi_class)
SOLVERS: dict[int, tuple[str, str, str | None]] = {
    1: ("classify", "squared_hinge", "ovr"),
    2: ("classify", "squared_hinge", "ovr"),
    3: ("classify", "hinge", "ovr"),
    4: ("classify", "hinge", "crammer_singer"),
    11: ("regress", "squared_epsilon_insensitive", None),
    12: ("regress", "squared_epsilon_insensitive", None),
    13: ("regress", "epsilon_insensitive", None),
}
_TASKS = ("classify", "regress", "rank")
_LOSSES = {
    "classify": ("hinge", "squared_hinge"),
    "regress": ("epsilon_insensitive", "squared_epsilon_insensitive"),
    "rank": ("hinge", "squared_hinge"),
}
_DATA = """\
DATA is a file of svmlight text (plain, or packed with gzip, bzip2, xz or zstd), a Parquet or Arrow file, a folder of
Parquet files, or a store that 'dualsvm convert' wrote; '-' is standard input, svmlight text."""


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Return the arguments, or tell what is wrong with them and exit."""
    parser = _parser()
    words = list(argv)
    if words[:1] == ["train"]:
        words = _class_weights(words)
    arguments, unknown = parser.parse_known_args(words)
    if unknown:
        arguments.parser.error(f"unrecognized arguments: {' '.join(unknown)}; see dualsvm {arguments.command} --help")
    if arguments.command == "train":
        _settle(arguments, arguments.parser.error)
    return arguments


def _class_weights(words: list[str]) -> list[str]:
    """Write LIBLINEAR's ``-w1 5`` as ``--class-weight 1=5``."""
    spread, left = [], list(words)
    while left:
        word = left.pop(0)
        if (match := re.fullmatch(r"-w(.+)", word)) and left:
            spread += [f"--class-weight={match[1]}={left.pop(0)}"]
        else:
            spread.append(word)
    return spread


def _settle(arguments: argparse.Namespace, refuse: Any) -> None:
    """Find out what is to be trained."""
    a = arguments
    if a.solver is not None:
        if a.solver not in SOLVERS:
            known = ", ".join(map(str, SOLVERS))
            refuse(f"-s {a.solver}: of LIBLINEAR's solvers, dualsvm has those of support vector machines, {known}")
        task, loss, multi_class = SOLVERS[a.solver]
        for name, given, meant in (("task", a.task, task), ("loss", a.loss, loss)):
            if given not in (None, meant):
                refuse(f"-s {a.solver} means --{name} {meant}, but --{name} {given} was given: leave one of them out")
        if a.multi_class not in (None, multi_class):
            refuse(f"-s {a.solver} says how classes are told apart: leave --multi-class out")
        a.task, a.loss, a.multi_class = task, loss, multi_class
    a.task = a.task or "classify"
    if a.loss not in (None, *_LOSSES[a.task]):
        refuse(f"--loss of --task {a.task} is {' or '.join(_LOSSES[a.task])}, not {a.loss}")
    only = {
        "classify": {"--multi-class": a.multi_class, "--class-weight (-wi)": a.class_weight, "--classes": a.classes},
        "regress": {"-p": a.epsilon},
        "rank": {"--slack": a.slack},
    }
    for task, options in only.items():
        for name, value in options.items():
            if task != a.task and value is not None:
                refuse(f"{name} is for --task {task}, not for --task {a.task}: leave it out")
    if a.task == "rank" and a.bias is not None and a.bias >= 0:
        refuse("-B: rankers have no intercept, as it would not change the order; leave it out")
    if a.folds is None and a.model is None:
        refuse("say where to write the model: dualsvm train DATA MODEL")
    if a.folds is not None:
        if a.model is not None:
            refuse("-v does not write a model: leave MODEL out")
        if a.checkpoint or a.resume:
            refuse("-v trains several models: leave --checkpoint and --resume out")
    if a.passes is not None and a.max_passes is not None:
        refuse("--passes reads so many times and is content; --max-passes goes on to the tolerance: give one of them")
    if a.checkpoint_every is not None and a.checkpoint is None:
        refuse("--checkpoint-every: say where with --checkpoint")
    a.class_weight = _by_class(a.class_weight, refuse)
    a.classes = None if a.classes is None else _labels(a.classes.split(","))


def _by_class(given: list[str] | None, refuse: Any) -> Any:
    """Return the factors on C by class."""
    if given is None or given == ["balanced"]:
        return given and "balanced"
    labels, weights = [], []
    for word in given:
        label, _, weight = word.rpartition("=")
        try:
            weights.append(float(weight))
        except ValueError:
            label = ""
        if not label:
            refuse(f"--class-weight is LABEL=WEIGHT (-wLABEL WEIGHT), or balanced, not {word!r}")
        labels.append(label)
    return dict(zip(_labels(labels), weights, strict=True))


def _labels(words: list[str]) -> list[Any]:
    """Return classes as the data have them: numbers, if all of them are."""
    try:
        return [float(word) for word in words]
    except ValueError:
        return words


def _number(text: str) -> float:
    value = float(text)
    if not value > 0 or value == float("inf"):
        raise ValueError
    return value


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError
    return value


def _folds(text: str) -> int:
    value = int(text)
    if value < 2:
        raise ValueError
    return value


def _base(text: str) -> Any:
    return text if text == "auto" else int(text)


def _columns(text: str) -> list[str]:
    return text.split(",")


_number.__name__, _count.__name__ = "positive number", "positive integer"  # as argparse calls them
_folds.__name__, _base.__name__ = "number of folds, 2 or more,", "index base"


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from importlib.metadata import version

        print(f"dualsvm {version('dualsvm')}")
        parser.exit()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dualsvm",
        description="Support vector machines, solved in the dual, with a proof of how close the answer is to the "
        "best one. Data may be much larger than memory.",
        epilog="'dualsvm train --help' and so on tell what each command takes.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, operands: str, what: str, examples: str, detail: str = "") -> argparse.ArgumentParser:
        made = commands.add_parser(
            name,
            usage=f"dualsvm {name} [options] {operands}",
            help=what,
            description=f"{what[0].upper()}{what[1:]}.\n\n{detail}{_DATA}",
            epilog=f"examples:\n{examples}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        made.set_defaults(parser=made)
        made.add_argument("-q", "--quiet", action="store_true", help="say nothing but results and errors")
        return made

    _train(command)
    _predict(command)
    _certify(command)
    _convert(command)
    _info(command)
    return parser


def _train(command: Any) -> None:
    parser = command(
        "train",
        "DATA MODEL",
        "learn a model from data, to a certified gap",
        "  dualsvm train data.svm model.npz\n"
        "  dualsvm train -s 3 -c 10 -B -1 data.svm.gz model.npz    as LIBLINEAR's train, L1-loss SVC\n"
        "  dualsvm train --cache-mb 500 --checkpoint run.npz store model.npz\n"
        "  dualsvm train --cache-mb 500 --checkpoint run.npz --resume run.npz store model.npz\n"
        "  dualsvm train --task regress --target price houses.parquet model.npz\n"
        "  zcat part*.gz | dualsvm train --passes 1 --classes=-1,1 - model.npz\n"
        "  dualsvm train -v 5 data.svm",
        "It reads DATA in chunks, as often as needed, keeps rows up to --cache-mb in memory, and stops when the\n"
        "certified gap is within -e. Ctrl-C writes the model learned so far, with its bounds.\n\n",
    )
    parser.add_argument("data", metavar="DATA", help="what to learn from")
    parser.add_argument("model", metavar="MODEL", nargs="?", help="where to write the model; not with -v")
    group = parser.add_argument_group("what to learn")
    group.add_argument("--task", choices=_TASKS, help="default: classify; rank needs queries")
    group.add_argument("-s", dest="solver", type=int, metavar="TYPE", help=_solver_help())
    group.add_argument("-c", dest="C", type=_number, metavar="C", default=1.0, help="cost of a slack (1)")
    group.add_argument(
        "-e", dest="tol", type=_number, metavar="TOL", default=1e-3,
        help="relative gap between the certified bounds to stop at (0.001); not LIBLINEAR's criterion",
    )  # fmt: skip
    group.add_argument(
        "-B", dest="bias", type=float, metavar="BIAS",
        help="value of the constant feature of the intercept; negative: no intercept (1; LIBLINEAR: -1)",
    )  # fmt: skip
    group.add_argument("-p", dest="epsilon", type=float, metavar="EPS", help="regress: errors that are free (0)")
    group.add_argument("--loss", metavar="LOSS", help="; ".join(f"{k}: {' or '.join(v)}" for k, v in _LOSSES.items()))
    group.add_argument("--multi-class", choices=["crammer_singer", "ovr"], help="default: crammer_singer")
    group.add_argument(
        "--class-weight", action="append", metavar="LABEL=W",
        help="factor on C of all rows of a class, or 'balanced'; -w1 5 is --class-weight 1=5. (With one-vs-rest, "
        "LIBLINEAR weighs them only where they are told from the rest)",
    )  # fmt: skip
    group.add_argument("--slack", choices=["pair", "query"], help="rank: a slack for each pair or query (pair)")
    group.add_argument("--lower", type=float, metavar="W", help="no weight of a feature below this")
    group.add_argument("--upper", type=float, metavar="W", help="no weight of a feature above this")
    group.add_argument("-v", dest="folds", type=_folds, metavar="N", help="cross-validate in N folds; write no model")
    group = parser.add_argument_group("how")
    group.add_argument("--cache-mb", type=float, default=256.0, metavar="MB", help="rows kept in memory (256)")
    group.add_argument("--passes", type=_count, metavar="N", help="read N times at most, and be content with that")
    group.add_argument("--max-passes", type=_count, metavar="N", help="read N times at most; warn where -e is missed")
    group.add_argument("--classes", metavar="A,B,...", help="the classes, for '-' with --passes 1")
    group.add_argument("--checkpoint", metavar="FILE", help="write the state of the training there now and then")
    group.add_argument("--checkpoint-every", type=float, metavar="SECONDS", help="how often (600)")
    group.add_argument("--resume", metavar="FILE", help="go on from a checkpoint of the same training")
    group.add_argument("--seed", type=int, default=0, help="of the order in which examples are visited (0)")
    _data_options(parser)


def _solver_help() -> str:
    return (
        "as LIBLINEAR: 1 and 2 are squared hinge, one-vs-rest; 3 hinge, one-vs-rest; 4 Crammer-Singer; 11 and 12 "
        "regression, squared; 13 regression. Default: hinge, Crammer-Singer"
    )


def _predict(command: Any) -> None:
    parser = command(
        "predict",
        "DATA MODEL [OUT]",
        "apply a model to data",
        "  dualsvm predict test.svm model.npz labels.txt\n"
        "  dualsvm predict --scores test.svm model.npz > scores.txt\n"
        "  zcat test.svm.gz | dualsvm predict - model.npz -",
        "It writes a line for every row: the class, the predicted value or the score to rank by; and tells how good\n"
        "they are if DATA holds targets.\n\n",
    )
    parser.add_argument("data", metavar="DATA", help="what to apply it to")
    parser.add_argument("model", metavar="MODEL", help="a model that 'dualsvm train' or an estimator's save wrote")
    parser.add_argument("out", metavar="OUT", nargs="?", default="-", help="default: '-', standard output")
    parser.add_argument("--scores", action="store_true", help="write scores: one a row, or one for each class")
    _data_options(parser)


def _certify(command: Any) -> None:
    parser = command(
        "certify",
        "MODEL DATA",
        "prove anew, from model and data, how close a model is to the best one",
        "  dualsvm certify model.npz data.svm && echo good",
        "Bounds are computed in one pass over the data that the model was learned from. The exit code is 0 if the\n"
        "gap is within the tolerance, and 3 if it is not.\n\n",
    )
    parser.add_argument("model", metavar="MODEL", help="the model")
    parser.add_argument("data", metavar="DATA", help="what it was learned from")
    parser.add_argument("-e", dest="tol", type=_number, metavar="TOL", help="tolerance (that of the training)")
    _data_options(parser)


def _convert(command: Any) -> None:
    parser = command(
        "convert",
        "DATA STORE",
        "write data as a store, the form that is read fastest",
        "  dualsvm convert data.svm.gz store\n"
        "  dualsvm convert --target label table.parquet store\n"
        "  dualsvm train store model.npz",
        "A store is a folder of .npy files. It appears when it is whole, and not before.\n\n",
    )
    parser.add_argument("data", metavar="DATA", help="what to convert")
    parser.add_argument("store", metavar="STORE", help="the folder to make")
    parser.add_argument("--force", action="store_true", help="replace a store that is there")
    _data_options(parser)


def _info(command: Any) -> None:
    parser = command(
        "info",
        "MODEL|STORE|DATA",
        "tell what a model, a store or a file of data holds",
        "  dualsvm info model.npz\n  dualsvm info --verify store",
    )
    parser.add_argument("data", metavar="MODEL|STORE|DATA", help="what to look at")
    parser.add_argument("--verify", action="store_true", help="read a store through and compare its checksums")
    _data_options(parser)


def _data_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("how to read DATA")
    group.add_argument("--target", metavar="COLUMN", help="Parquet, Arrow: the column of targets")
    group.add_argument("--features", type=_columns, metavar="A,B,...", help="... of features (all others)")
    group.add_argument("--qid", metavar="COLUMN", help="... of queries")
    group.add_argument("--weight", metavar="COLUMN", help="... of weights")
    group.add_argument("--n-features", type=_count, metavar="N", help="text: number of features (the largest index)")
    group.add_argument(
        "--index-base", type=_base, choices=["auto", 0, 1], default="auto", metavar="{auto,0,1}",
        help="text: first index (auto: 0 if that occurs, else 1)",
    )  # fmt: skip
    group.add_argument("--bad-lines", choices=["error", "skip"], default="error", help="text: what to do (error)")
    group.add_argument("--dtype", choices=["float32", "float64"], help="type of the features (that of the data)")
    group.add_argument("--chunk-rows", type=_count, metavar="N", help="rows read at a time (16 MB of them)")
    group.add_argument("--threads", type=int, default=1, metavar="N", help="-1: all cores (1)")
