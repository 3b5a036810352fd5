# Usage: source DIR/env.sh. NCCL programs that this shell starts then use Millrace, on the Java next to this file. The
# shell also finds the command millrace.
millrace=${BASH_SOURCE:-$0}
millrace=$(CDPATH= cd -- "$(dirname -- "$millrace")" && pwd -P)/libnccl-net-millrace.so
if [ ! -f "$millrace" ]; then
  echo "This shell does not tell which file it reads; instead: export NCCL_NET_PLUGIN=DIR/libnccl-net-millrace.so" >&2
  unset millrace
  return 1
fi
case $millrace in
*[:,]*)
  echo "$millrace: no Java runs in a folder with a colon in its path, and NCCL takes no comma; move the folder" >&2
  unset millrace
  return 1
  ;;
esac
export NCCL_NET_PLUGIN="$millrace"
case ":$PATH:" in
*:"${millrace%/*}/bin":*) ;;
*) export PATH="${millrace%/*}/bin:$PATH" ;;
esac
unset millrace
