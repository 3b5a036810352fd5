package org.millrace.trace;

/** A link over which nothing comes any more: see {@link ProcessTrace#silence}. Of the trace's thread. */
public final class SilenceTrace {

    private final ProcessTrace process;
    private final int index;
    private final long base;

    SilenceTrace(ProcessTrace process, int index, long base) {
        this.process = process;
        this.index = index;
        this.base = base;
    }

    /** How many streams the link has. */
    public void streams(int count) {
        TraceMemory.set(base + SilenceFields.STREAMS_OFFSET, count);
    }

    /** Something has come over it again. */
    public void heard() {
        process.close(index);
    }

    /** The silent streams have ended, and nothing has come until then. */
    public void lost() {
        process.lost(index);
    }
}
