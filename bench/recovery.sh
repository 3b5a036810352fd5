#!/bin/bash
# Loses random ranks of a training loop: bench/recovery.sh [TRIALS [SEED [FIRST [LANES]]]]. First run mvn test-compile.
# LANES run side by side, each on two cores. The compiled class Losses also runs without this script and without a JDK.
# A JDK from 22 on must be in JAVA_HOME or on the path.
set -e
cd "$(dirname "$0")/.."
classes=$(mktemp -d)
trap 'rm -r "$classes"' EXIT
libraries=$(find ~/.m2/repository -name 'log4j-api-2*.jar' | sort -V | tail -1 | tr '\n' ':')
path=target/classes:$libraries
"${JAVA_HOME:+$JAVA_HOME/bin/}javac" -cp "$path" -d "$classes" bench/recovery/Losses.java
"${JAVA_HOME:+$JAVA_HOME/bin/}java" --enable-native-access=ALL-UNNAMED -cp "$classes:$path" Losses "${1:-100}" "${2:-1}" "${3:-0}" "${4:-1}"
