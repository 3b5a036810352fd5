# Becomes a rank: sh -c THIS GRACE COMMAND [ARGUMENT...]. Standard input contains names of signals, one per line. The
# rank gets USR1 alone; its whole process group gets the others. At the end of the input the watch ends the group.
# So no process outlives the launcher, even if the launcher is killed.
# The watch runs in a separate session, so that neither Ctrl-C nor a signal for the rank's group ends it.
if ! command -v "$1" > /dev/null; then
    echo "there is no command '$1' on host $(uname -n)" >&2
    exit 127
fi
exec 3<&0 < /dev/null
# Two levels of background processes, because the command must not have a child that it did not start.
(setsid sh -c '
    rank=$1 grace=$2
    while read -r signal; do
        case $signal in
        USR1) kill -s "$signal" "$rank" ;; # it would end every process without a handler
        *) kill -s "$signal" -- "-$rank" || kill -s "$signal" "$rank" ;;
        esac
    done
    # Retries after a second, because the rank may not have had its group yet.
    kill -s TERM -- "-$rank" || { sleep 1; kill -s TERM -- "-$rank" || exit; }
    while [ "$grace" -gt 0 ] && kill -s 0 -- "-$rank"; do
        sleep 1
        grace=$((grace - 1))
    done
    kill -s KILL -- "-$rank"' millrace-watch $$ "$0" <&3 > /dev/null 2>&1 3<&- &)
exec 3<&-
# setsid forks if its process leads a group; the command must keep this process id.
read -r _ _ _ _ millrace_group _ < /proc/$$/stat
if [ "$millrace_group" = $$ ]; then
    exec "$@"
fi
exec setsid "$@"
