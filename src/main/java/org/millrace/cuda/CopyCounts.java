package org.millrace.cuda;

/**
 * What copy engines were asked for, and by how many calls of the driver's.
 *
 * @param merged those that became part of the one before
 */
public record CopyCounts(long asked, long merged, long calls, long batches, long batched, long events) {

    /** Nothing. */
    public static final CopyCounts NONE = new CopyCounts(0, 0, 0, 0, 0, 0);

    /** The sum of several queues. */
    public CopyCounts plus(CopyCounts other) {
        return new CopyCounts(asked + other.asked, merged + other.merged, calls + other.calls, batches + other.batches,
                batched + other.batched, events + other.events);
    }

    /** One line for people and for scripts. */
    @Override
    public String toString() {
        return "copies by the GPU's engines: " + asked + " (" + merged + " merged with the one before), begun by "
                + calls + " calls of the driver's, of which " + batches + " began " + batched + " at once, and "
                + events + " events";
    }
}
