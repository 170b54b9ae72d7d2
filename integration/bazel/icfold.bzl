"""icfold_binary: a cc_binary (or cc_test, or a shared library made by cc_binary), folded.

    load(":icfold.bzl", "icfold_binary")
    cc_binary(name = "prog.full", srcs = [...], linkopts = ["-Wl,--emit-relocs"])
    icfold_binary(name = "prog", binary = ":prog.full", options = ["--icf=all"])

The action has declared inputs only, and the same input gives the same bytes: it runs in a sandbox or on another machine, and its
result can be cached.  `--define icfold=off` makes a copy instead, for builds to compare with.  The program that folds is //tools:icfold,
or the target in the attribute `icfold`.
"""

def _icfold_binary_impl(ctx):
    out = ctx.actions.declare_file(ctx.label.name)
    binary = ctx.file.binary
    if ctx.var.get("icfold") == "off":
        ctx.actions.symlink(output = out, target_file = binary, is_executable = True)
    else:
        args = ctx.actions.args()
        args.add("--quiet")
        args.add_all(ctx.attr.options)
        args.add(binary)
        args.add("-o", out)
        ctx.actions.run(
            executable = ctx.executable.icfold,
            arguments = [args],
            inputs = [binary],
            outputs = [out],
            mnemonic = "Icfold",
            progress_message = "Folding identical functions of %s" % ctx.label,
        )
    runfiles = ctx.runfiles(files = [out]).merge(ctx.attr.binary[DefaultInfo].default_runfiles)
    return [DefaultInfo(files = depset([out]), runfiles = runfiles, executable = out)]

icfold_binary = rule(
    implementation = _icfold_binary_impl,
    attrs = {
        "binary": attr.label(mandatory = True, allow_single_file = True, cfg = "target"),
        "options": attr.string_list(doc = "options of icfold(1)"),
        "icfold": attr.label(default = "//tools:icfold", executable = True, allow_single_file = True, cfg = "exec"),
    },
    executable = True,
)
