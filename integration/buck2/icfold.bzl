"""icfold_binary: a cxx_binary, folded.

    load("//:icfold.bzl", "icfold_binary")
    cxx_binary(name = "prog-full", srcs = [...], linker_flags = ["-Wl,--emit-relocs"])
    icfold_binary(name = "prog", binary = ":prog-full", options = ["--icf=all"])

The action has declared inputs only, and the same input gives the same bytes: it runs on another machine as well, and its result can
be cached.  The program that folds is //tools:icfold, or the target in the attribute `icfold`.
"""

def _icfold_binary_impl(ctx):
    binary = ctx.attrs.binary[DefaultInfo].default_outputs[0]
    out = ctx.actions.declare_output(ctx.attrs.out or ctx.label.name)
    ctx.actions.run(
        cmd_args(
            ctx.attrs.icfold[RunInfo],
            "--quiet",
            ctx.attrs.options,
            binary,
            "-o",
            out.as_output(),
        ),
        category = "icfold",
    )

    # Shared libraries and files that the program needs are those of the unfolded one.
    needed = ctx.attrs.binary[DefaultInfo].other_outputs
    return [
        DefaultInfo(default_output = out, other_outputs = needed),
        RunInfo(args = cmd_args(out, hidden = needed)),
    ]

icfold_binary = rule(
    impl = _icfold_binary_impl,
    attrs = {
        "binary": attrs.dep(providers = [RunInfo]),
        "icfold": attrs.exec_dep(default = "//tools:icfold", providers = [RunInfo]),
        "options": attrs.list(attrs.string(), default = []),
        "out": attrs.option(attrs.string(), default = None),
    },
)
