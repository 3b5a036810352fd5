#!/bin/sh
# bin/millrace: the command line of the jar in the parent folder. It uses the first Java of this list:
# MILLRACE_JAVA_HOME, runtime in the parent folder, JAVA_HOME, java on the PATH.
home=$(CDPATH= cd -- "$(dirname -- "$(readlink -f -- "$0")")/.." && pwd -P) || exit 1
if [ -n "$MILLRACE_JAVA_HOME" ]; then
  java=$MILLRACE_JAVA_HOME/bin/java
elif [ -x "$home/runtime/bin/java" ]; then
  java=$home/runtime/bin/java
elif [ -n "$JAVA_HOME" ]; then
  java=$JAVA_HOME/bin/java
else
  java=java
fi
# These commands run for seconds, or beside ranks. The fast compiler takes less of the cores than the optimizing one.
case $1 in run | doctor | plugin) options=-XX:TieredStopAtLevel=1 ;; *) options= ;; esac
exec "$java" $options -jar "$home/millrace.jar" "$@"
