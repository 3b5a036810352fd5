package org.millrace.engine.bootstrap;

/** Rank and its process, as messages name them. */
record RankIdentity(int rank, long pid, String host) {

    static RankIdentity local(int rank) {
        return new RankIdentity(rank, ProcessHandle.current().pid(), Machine.NAME);
    }

    /** Returns the process only, for a message that already names the rank. */
    String process() {
        return "pid " + pid + " on " + host;
    }

    @Override
    public String toString() {
        return "rank " + rank + " (" + process() + ")";
    }
}
