#!/bin/bash
# bazel.sh: the rules for Bazel and Buck2 of integration/.  Their language is a part of Python's: Buck2's rule, which Debian does not have,
# is run by a few lines of Python that stand for Buck2.  BAZEL=full: Bazel builds, in its sandbox, and from its cache.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
start_suite bazel python3 gcc
R=$ROOT/integration
printf 'apples 35\npears 15\n' >expected
folded() { [ "$(symbol_value "$1" apples)" = "$(symbol_value "$1" pears)" ] && ! readelf -SW "$1" | grep -q '\.rela\.text'; }
for f in bazel/BUILD bazel/icfold.bzl bazel/tools/BUILD buck2/BUCK buck2/icfold.bzl buck2/tools/BUCK; do
	check "bazel/syntax/$f" "$(cat log 2>/dev/null)" python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())' "$R/$f" 2>log
done

# --- Buck2: the target of BUCK, made by the rule's own function
gcc -O2 -Wl,--emit-relocs "$R"/src/*.c -o prog-full
cat >buck2.py <<'END'
import subprocess, sys
rules, targets, ran = sys.argv[1], sys.argv[2], []
class Provider(dict):
    def __init__(self, **k):
        super().__init__(k)
        self.__dict__.update(k)
class DefaultInfo(Provider): pass
class RunInfo(Provider): pass
class Args(list):
    def __init__(self, *args, hidden=()):
        flat = lambda x: [z for y in x for z in flat(y)] if isinstance(x, (list, tuple)) else [x.args] if isinstance(x, RunInfo) else [x]
        super().__init__(z for x in flat(args) for z in (x if isinstance(x, Args) else [x]))
class Out(str):
    def as_output(self): return self
class Attrs:
    def __getattr__(self, kind): return lambda *inner, **k: Provider(kind=kind, default=k.get("default"), providers=k.get("providers"))
class Rule:
    def __init__(self, impl, attrs): self.impl, self.attrs = impl, attrs
env = dict(rule=Rule, attrs=Attrs(), DefaultInfo=DefaultInfo, RunInfo=RunInfo, cmd_args=Args)
exec(compile(open(rules).read(), rules, "exec"), env)
rule = env["icfold_binary"]
def icfold_binary(name, **given):
    assert set(given) <= set(rule.attrs), given
    values = {a: given.get(a, t.default) for a, t in rule.attrs.items()}
    assert values["icfold"] == "//tools:icfold" and values["binary"] == ":prog-full"
    values["icfold"] = {RunInfo: RunInfo(args=sys.argv[3])}
    values["binary"] = {DefaultInfo: DefaultInfo(default_outputs=["prog-full"], other_outputs=["lib.so"]), RunInfo: RunInfo(args="prog-full")}
    class Actions:
        declare_output = staticmethod(Out)
        @staticmethod
        def run(args, category):
            ran.append(category)
            subprocess.run(args, check=True)
    class Ctx: pass
    ctx = Ctx()
    ctx.actions, ctx.label, ctx.attrs = Actions, Provider(name=name), Provider(**values)
    made = {type(p): p for p in rule.impl(ctx)}
    assert made[DefaultInfo].default_output == "prog" and made[DefaultInfo].other_outputs == ["lib.so"] and made[RunInfo].args == ["prog"]
quiet = lambda **k: None
exec(compile(open(targets).read(), targets, "exec"), dict(load=lambda *a: None, icfold_binary=icfold_binary, cxx_binary=quiet))
assert ran == ["icfold"]
END
python3 buck2.py "$R/buck2/icfold.bzl" "$R/buck2/BUCK" "$ICFOLD" >log 2>&1
check bazel/buck2 "$(tail -n 1 log)" folded prog
check bazel/buck2-runs "$(./prog 2>&1 | head -n 1)" bash -c './prog | cmp -s expected -'

# --- Bazel itself
if [ "${BAZEL:-}" != full ]; then finish; fi
rules=/usr/share/bazel/rules
if ! have bazel || ! [ -d $rules/java ] || ! [ -d $rules/proto ]; then
	skip bazel/build "no Bazel with its rules (Debian: bazel-bootstrap bazel-rules-java bazel-rules-proto)"
	finish
fi
# Debian's bazel-rules-cc is of a later Bazel than Debian's Bazel: its own rules under the names that it expects.
mkdir -p cc/cc w/tools
: >cc/WORKSPACE
: >cc/cc/BUILD
for r in import library binary toolchain toolchain_suite; do printf 'def cc_%s(**attrs):\n    native.cc_%s(**attrs)\n\n' $r $r; done >cc/cc/defs.bzl
cp "$R"/bazel/[!t]* "$R"/src/* w
cp "$R/bazel/tools/BUILD" "$ICFOLD" w/tools
cp "$ICFOLD" w/tools/icfold
cc=$PWD/cc
cd w || exit 1
bazel() { command bazel --output_user_root="$WORK/root" --max_idle_secs=60 "$@"; }
build() { bazel build --disk_cache="$WORK/cache" --override_repository=rules_cc="$cc" --override_repository=rules_java=$rules/java --override_repository=rules_proto=$rules/proto "$@" >log 2>&1; }
build :prog
check bazel/build "$(grep -m 1 ERROR log)" folded bazel-bin/prog
check bazel/runs "$(bazel-bin/prog 2>&1 | head -n 1)" bash -c 'bazel-bin/prog | cmp -s ../expected -'
check bazel/input "the unfolded program is folded" bash -c '! cmp -s bazel-bin/prog bazel-bin/prog.full'
cp bazel-bin/prog ../first
bazel clean >log 2>&1
build :prog
# The line says who ran what; the log can have what was printed in the sandbox the first time, from the cache, too.
check bazel/cache "$(grep processes log)" bash -c 'cmp -s bazel-bin/prog ../first && grep "^INFO: .* processes: " log >said && grep -qE "(disk|remote) cache hit" said && ! grep -q sandbox said'
build --define=icfold=off :prog
check bazel/off "$(grep -m 1 ERROR log)" cmp -s bazel-bin/prog bazel-bin/prog.full
sed -i 's/binary = ":prog.full",/&\n    options = ["--keep-unique=nobody"],/' BUILD
build :prog
check bazel/failure "status $?" test $? != 0
check bazel/failure-says-why "$(grep -m 1 ERROR log)" grep -q 'icfold: .*nobody' log
bazel shutdown >log 2>&1
finish
