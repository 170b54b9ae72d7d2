#!/bin/bash
# astray_a64.sh: astray.sh for AArch64.
TARGET=aarch64 exec bash "$(dirname "$0")/astray.sh"
