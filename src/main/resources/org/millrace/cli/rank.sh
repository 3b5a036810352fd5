# Becomes a rank: what is set before this text says which (token, grace, its variables, "$@"). Standard input then brings
# the names of signals, a line each, for the rank, and those that end for all that it has started too; where the input
# ends, they all end. So nothing outlives the launcher, however that ends, on this host or, over ssh, on another.
rank() {
    # In a session of its own: neither a terminal's Ctrl-C nor a signal for the rank's group ends the watch.
    watch='
        rank=$1 grace=$2
        while read -r signal; do
            case $signal in
            USR1) kill -s "$signal" "$rank" ;; # would end whatever does not expect it
            *) kill -s "$signal" -- "-$rank" || kill -s "$signal" "$rank" ;;
            esac
        done
        # once more a second later: the rank may not have had its group yet
        kill -s TERM -- "-$rank" || { sleep 1; kill -s TERM -- "-$rank" || exit; }
        while [ "$grace" -gt 0 ] && kill -s 0 -- "-$rank"; do
            sleep 1
            grace=$((grace - 1))
        done
        kill -s KILL -- "-$rank"'
    if ! command -v "$1" > /dev/null; then
        echo "there is no command '$1' on host $(uname -n)" >&2
        exit 127
    fi
    exec 3<&0 < /dev/null
    # twice in the background: the command must not have a child that it did not start
    (setsid sh -c "$watch" millrace-watch $$ "$grace" <&3 > /dev/null 2>&1 3<&- &)
    exec 3<&-
    echo "$token $$"
    read -r _ _ _ _ group _ < /proc/$$/stat
    if [ "$group" = $$ ]; then
        exec "$@"
    fi
    exec setsid "$@"
}
rank "$@"
