"""vcalls.py ORIGINAL FOLDED MAP RESOLVER DUMPER COUNT: virtual calls through slots that hold shared functions.

DUMPER (the test program's --dump) lists the virtual call sites of FOLDED.  For random sites and vtables of ORIGINAL (symbols
_ZTV*, words read here from the file and its relocations) the function in the slot is the truth: with the vtable's address RESOLVER
must name it, without it must be among the candidates.  Prints one line of figures; exit status 1 when an answer is wrong."""
import random
import re
import subprocess
import sys

from words import Words

orig, folded, mapfile, resolver, dumper, count = sys.argv[1:7]
rng = random.Random(7)


def run(*args, **kw):
    return subprocess.run(args, capture_output=True, text=True, **kw).stdout


new, name = {}, {}
for line in open(mapfile):
    old, size, to, text = line.split(None, 3)
    new[int(old, 16)] = int(to, 16)
    name[int(old, 16)] = text.strip()
shared = {}
for old, to in new.items():
    shared.setdefault(to, []).append(old)

word = Words(orig).at
tables = []
for m in re.findall(r"^ *\d+: (\w+) +(\d+) OBJECT .* (_ZTV\S+)$", run("readelf", "-sW", orig), re.M):
    tables.append((int(m[0], 16) + 16, int(m[0], 16) + int(m[1])))
tables = sorted(set(tables))
sites = [tuple(int(x, 16) for x in m) for m in re.findall(r"^vcall (\w+) (\w+)$", run(dumper, "--dump", folded), re.M)]
asked = []
for site, slot in sites:
    for point, end in tables:
        if point + 8 * slot + 8 <= end:
            f = word(point + 8 * slot)
            if f in new and len(shared[new[f]]) > 1:
                asked.append((site, point, f))
if not asked:
    print("no virtual call of a shared function")
    sys.exit(1)
if len(asked) > int(count):
    asked = rng.sample(asked, int(count))
text = "".join("%x %x\n%x\n\n%x\n%x\n\n" % (new[f], point, site, new[f], site) for site, point, f in asked)
answer = run(resolver, "--resolve", folded, input=text).split("\n")
exact = alone = several = wrong = candidates = 0
for i, (site, point, f) in enumerate(asked):
    known, guess = answer[6 * i].split(), answer[6 * i + 3].split()
    if known != ["vcall", "%x" % f]:
        wrong += 1
        print("site %x, vtable %x: is %x %s; answer %s" % (site, point, f, name[f], " ".join(known)))
    else:
        exact += 1
    if "%x" % f not in guess[1:]:
        wrong += 1
        print("site %x: is %x %s; answer %s" % (site, f, name[f], " ".join(guess)))
    elif len(guess) == 2:
        alone += 1
    else:
        several += 1
        candidates += len(guess) - 1
print("%d sites, %d calls: %d named right by the vtable's address; without it %d named right, %d with %.1f candidates; %d wrong" % (
    len(sites), len(asked), exact, alone, several, candidates / max(several, 1), wrong))
sys.exit(wrong != 0)
