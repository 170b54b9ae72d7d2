#!/bin/bash
# coredump.sh: integration/coredump: the stack of a crash, as systemd-coredump has it in the journal and in a core, with true names.
# systemd's own programs run in a mount namespace, where that is possible; the rest is tested with a text that they wrote.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
start_suite coredump g++ gdb
mkdir bin
sed "s|^icfold=icfold\$|icfold='$ICFOLD'|" "$ROOT/integration/coredump/icfold-coredump" >bin/icfold-coredump
chmod +x bin/icfold-coredump
export PATH=$PWD/bin:$PATH
if ! g++ -g -O1 -Wl,--emit-relocs "$FIXTURES/profile/crash.cc" -o full 2>log || ! "$ICFOLD" -q --icf=all --allow-growth full -o "a prog" 2>>log; then
	not_ok coredump/build "$(first_line log)"
	finish
fi
for who in early late; do
	gdb -nx -batch -iex 'set debuginfod enabled off' -ex "set environment CRASH $who" -ex run -ex "gcore $who.core" -ex 'bt -frame-arguments none' "./a prog" >$who.gdb 2>&1
done
if ! [ -s early.core ] || ! [ -s late.core ]; then
	skip coredump "gdb makes no core here: $(tail -n 1 early.gdb)"
	finish
fi
# called FILE: the program's own functions, in order.
called() { grep -oE 'use<(Early|Late)>|(early|late)\((Early|Late)\*\)|main at' "$1" | sed -E 's/\(.*| at//' | uniq | tr '\n' ' '; }
want() { if [ "$1" = early ]; then echo "use<Early> early main "; else echo "use<Late> late main "; fi; }

# --- what systemd 252 wrote of this program, with the addresses of this build -----------------------------------------------------
# recorded: the text of `coredumpctl info`; the program's frames are the callers and the PC.
recorded() {
	local own
	mapfile -t own < <(sed -nE 's/^#[0-9]+ +0x([0-9a-f]+) in (use|early|late|main).*/\1/p' "$1")
	cat <<END
           PID: 11471 (a prog)
        Signal: 11 (SEGV)
     Timestamp: Mon 2026-11-23 20:31:45 UTC (3s ago)
  Command Line: $PWD/a\x20prog
    Executable: $PWD/a prog
       Storage: none
       Message: Process 11471 (a prog) of user 0 dumped core.

                Stack trace of thread 11471:
                #0  0x00007ffff7e3eeec __pthread_kill_implementation (libc.so.6 + 0x8aeec)
                #1  0x00007ffff7deffb2 __GI_raise (libc.so.6 + 0x3bfb2)
END
	local n=2 a
	for a in "${own[@]}"; do
		printf '                #%d  0x%016x n/a (a prog + 0x%x)\n' $n "0x$a" $((0x$a - 0x555555554000))
		n=$((n + 1))
	done
	printf '                #%d  0x00007ffff7ddb24a __libc_start_call_main (libc.so.6 + 0x2724a)\n' $n
	echo '                ELF object binary architecture: AMD x86-64'
}
if [ "$MACHINE" = x86_64 ] && [ "$(readelf -h "a prog" | grep -c 'DYN')" = 1 ]; then
	cat >bin/coredumpctl <<'END'
#!/bin/sh
echo "$*" >asked
[ -s text ] || { echo "No coredumps found." >&2; exit 1; }
cat text
END
	chmod +x bin/coredumpctl
	for who in early late; do
		recorded $who.gdb >text
		icfold-coredump -r "a prog" >said 2>log
		check coredump/recorded-$who "$(called said)" [ "$(called said)" = "$(want $who)" ]
		check coredump/recorded-$who-rest "$(diff text said | grep -c '^<') lines differ" cmp -s <(grep -v 'a prog + ' text) <(grep -v 'a prog + ' said)
	done
	check coredump/arguments "$(cat asked)" [ "$(cat asked)" = "--no-pager -1 info -r a prog" ]
	sed -i 's/Executable: .*/Executable: \/nowhere\/prog/' text
	icfold-coredump >said 2>log
	check coredump/gone "status $?: $(first_line log)" bash -c "cmp -s text said && grep -q 'cannot read /nowhere/prog' log"
	: >text
	icfold-coredump >said 2>log
	check coredump/none "status $?" test $? = 1
	rm bin/coredumpctl
else
	skip coredump/recorded "the recorded text is of x86-64"
fi
# As `coredumpctl debug --debugger=icfold-coredump` calls it.
for who in early late; do
	icfold-coredump "$PWD/a prog" -c $who.core >said 2>log
	check coredump/core-$who "$(called said) $(first_line log)" [ "$(called said)" = "$(want $who)" ]
done

# --- systemd itself: its journal and its socket, in folders that nobody else sees ------------------------------------------------
dir=/lib/systemd
if [ "$(id -u)" != 0 ] || ! have coredumpctl || ! have systemd-socket-activate || ! [ -x $dir/systemd-coredump ] || ! unshare -m true 2>log; then
	skip coredump/systemd "not root, or no systemd-coredump"
	finish
fi
# The stack is taken by a user of its own, who must be able to read the program.
chmod 755 .
cp "a prog" prog
for who in early late; do gdb -nx -batch -iex 'set debuginfod enabled off' -ex "set environment CRASH $who" -ex run -ex "gcore $who.core" ./prog >$who.gdb 2>&1; done
cat >crash.gdb <<END
set debuginfod enabled off
python
import os, subprocess, time
gdb.execute("set environment CRASH " + os.environ["WHO"])
gdb.execute("run")
pid = str(gdb.selected_inferior().pid)
subprocess.run(["$dir/systemd-coredump", pid, "0", "0", "11", str(int(time.time())), "9223372036854775808", "host", "1"], stdin=open(os.environ["WHO"] + ".core", "rb"))
end
kill
END
cat >inside.sh <<END
mount -t tmpfs none /run && mkdir -p /var/lib/systemd/coredump && mount -t tmpfs none /var/lib/systemd/coredump || exit 1
mkdir -p /run/log/journal /run/systemd/journal /run/systemd/journald.conf.d
printf '[Journal]\nStorage=volatile\nAudit=no\nReadKMsg=no\n' >/run/systemd/journald.conf.d/test.conf
$dir/systemd-journald >journald.log 2>&1 &
journal=\$!
for i in \$(seq 100); do [ -S /run/systemd/journal/socket ] && break; sleep 0.1; done
systemd-socket-activate --accept --seqpacket -l /run/systemd/coredump $dir/systemd-coredump >socket.log 2>&1 &
socket=\$!
for i in \$(seq 100); do [ -S /run/systemd/coredump ] && break; sleep 0.1; done
last=none
for who in early late; do
	WHO=\$who gdb -nx -batch -x crash.gdb ./prog >crash.log 2>&1
	for i in \$(seq 100); do coredumpctl --no-pager -1 info >\$who.info 2>/dev/null && grep -q "Stack trace" \$who.info && ! grep -qxF "\$last" \$who.info && break; sleep 0.2; done
	last=\$(grep -m1 ' PID: ' \$who.info)
	icfold-coredump >\$who.said 2>\$who.log
	icfold-coredump "\$PWD/prog" >\$who.match 2>&1
	coredumpctl --no-pager -1 debug --debugger=icfold-coredump >\$who.stack 2>&1 </dev/null
done
kill \$socket \$journal
END
timeout -k 5 120 unshare -m bash inside.sh >log 2>&1
if grep -q 'n/a (.*/prog + ' late.info 2>/dev/null; then
	skip coredump/systemd "systemd-coredump's user cannot read this folder"
	finish
fi
if ! grep -q 'Stack trace' late.info 2>/dev/null; then
	skip coredump/systemd "systemd-coredump does not run here: $(tail -qn 1 log journald.log socket.log 2>/dev/null | head -n 1)"
	finish
fi
for who in early late; do
	check coredump/systemd-$who "$(called $who.said) $(first_line $who.log)" [ "$(called $who.said)" = "$(want $who)" ]
	check coredump/systemd-$who-match "$(first_line $who.match)" [ "$(called $who.match)" = "$(want $who)" ]
	check coredump/systemd-$who-core "$(called $who.stack) $(tail -n 1 $who.stack)" [ "$(called $who.stack)" = "$(want $who)" ]
done
# systemd alone shows the kept function both times.
check coredump/systemd-contrast "$(grep -h ' (prog + ' early.info | head -n 1)" [ "$(grep -o '_Z3useI[0-9A-Za-z]*' early.info)" = "$(grep -o '_Z3useI[0-9A-Za-z]*' late.info)" ]
finish
