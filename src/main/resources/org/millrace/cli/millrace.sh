#!/bin/sh
# bin/millrace: the command line of the jar in the folder above, on the Java that lies there, unless MILLRACE_JAVA_HOME names one.
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
# what starts ranks compiles little, and takes no core from them for it
[ "$1" = run ] && options=-XX:TieredStopAtLevel=1 || options=
exec "$java" $options -jar "$home/millrace.jar" "$@"
