package org.millrace.engine.bootstrap;

/** A rank, and the process that is it: how messages name it. */
record RankIdentity(int rank, long pid, String host) {

    static RankIdentity local(int rank) {
        return new RankIdentity(rank, ProcessHandle.current().pid(), Machine.NAME);
    }

    /** The process alone, where the rank is said already. */
    String process() {
        return "pid " + pid + " on " + host;
    }

    @Override
    public String toString() {
        return "rank " + rank + " (" + process() + ")";
    }
}
