package org.millrace.cli;

/** Combined result of a cell, from the reports of all ranks. */
final class CellResult {

    private final CellGroup group;
    private final CellGroup.Cell cell;
    private int heard;
    private long wrong;
    private boolean ran = true;
    private String refusal = "";
    private int refusalOrder = Integer.MAX_VALUE;
    private String failure = "";

    CellResult(CellGroup group, CellGroup.Cell cell) {
        this.group = group;
        this.cell = cell;
    }

    CellGroup group() {
        return group;
    }

    CellGroup.Cell cell() {
        return cell;
    }

    void add(MatrixWorker.CellReport event) {
        heard++;
        wrong += event.wrong();
        ran &= event.ran() > 0;
        // A sending rank knows more about its route than a rank that only receives. The sending rank's reason is
        // therefore preferred, in whatever order the reports arrive.
        int order = cell.operation().isReceivedByRoot() ? -event.rank() : event.rank();
        if (!event.refusal().isEmpty() && order < refusalOrder) {
            refusalOrder = order;
            refusal = event.refusal();
        }
        failure = failure.isEmpty() ? event.failure() : failure;
    }

    /** Marks the cell as failed if a rank has not reported about it. */
    void fail(String why) {
        heard = group.ranks();
        failure = failure.isEmpty() ? why : failure;
    }

    boolean isComplete() {
        return heard >= group.ranks();
    }

    /** Returns whether the cell ran as requested on all ranks. */
    boolean hasRun() {
        return failure.isEmpty() && ran;
    }

    boolean isImpossible() {
        return failure.isEmpty() && !ran;
    }

    /** Returns whether all elements are right and no rank has failed. */
    boolean isGood() {
        return wrong() == 0 && failure.isEmpty();
    }

    /**
     * Returns the number of wrong elements; 0 if the cell is impossible. The data of an impossible cell took another
     * route. A rank that only receives cannot detect this, so its wrong elements do not count.
     */
    long wrong() {
        return isImpossible() ? 0 : wrong;
    }

    /** Returns the reason why the cell is impossible. Empty if it is possible. */
    String reason() {
        return isImpossible() ? refusal : "";
    }

    /** Returns the failure, empty if there was none. */
    String failure() {
        return failure;
    }
}
