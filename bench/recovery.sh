#!/bin/bash
# Loses random ranks of a training loop: bench/recovery.sh [TRIALS [SEED]]. First run mvn test-compile.
# A JDK from 22 on must be in JAVA_HOME or on the path.
set -e
cd "$(dirname "$0")/.."
classes=$(mktemp -d)
trap 'rm -r "$classes"' EXIT
libraries=$(find ~/.m2/repository -name 'log4j-api-2*.jar' | sort -V | tail -1 | tr '\n' ':')
path=target/classes:$libraries
"${JAVA_HOME:+$JAVA_HOME/bin/}javac" -cp "$path" -d "$classes" bench/recovery/Losses.java
"${JAVA_HOME:+$JAVA_HOME/bin/}java" --enable-native-access=ALL-UNNAMED -cp "$classes:$path" Losses "${1:-100}" "${2:-1}"
