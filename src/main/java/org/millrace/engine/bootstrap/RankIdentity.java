package org.millrace.engine.bootstrap;

/** Identity of a rank: its number, process and host. Messages name a rank in this way. */
record RankIdentity(int rank, long pid, String host) {

    static RankIdentity local(int rank) {
        return new RankIdentity(rank, ProcessHandle.current().pid(), Machine.NAME);
    }

    /** Returns the process and its host, for a message that already names the rank. */
    String process() {
        return "pid " + pid + " on " + host;
    }

    @Override
    public String toString() {
        return "rank " + rank + " (" + process() + ")";
    }
}
