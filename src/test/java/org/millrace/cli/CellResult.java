package org.millrace.cli;

/** What became of a cell: all ranks' words together. */
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
        // of a rank that sends, which sees more of the way; always the same rank, in whatever order they are heard
        int order = cell.operation().isReceivedByRoot() ? -event.rank() : event.rank();
        if (!event.refusal().isEmpty() && order < refusalOrder) {
            refusalOrder = order;
            refusal = event.refusal();
        }
        failure = failure.isEmpty() ? event.failure() : failure;
    }

    /** It was not finished. */
    void fail(String why) {
        heard = group.ranks();
        failure = failure.isEmpty() ? why : failure;
    }

    boolean isComplete() {
        return heard >= group.ranks();
    }

    /** It ran on all ranks as was asked. */
    boolean hasRun() {
        return failure.isEmpty() && ran;
    }

    boolean isImpossible() {
        return failure.isEmpty() && !ran;
    }

    /** Nothing is wrong, and nothing failed. */
    boolean isGood() {
        return wrong() == 0 && failure.isEmpty();
    }

    /** Of an impossible one none: a rank that only receives does not see that it came another way, whose cell it is. */
    long wrong() {
        return isImpossible() ? 0 : wrong;
    }

    /** Why it is impossible; empty if it is not. */
    String reason() {
        return isImpossible() ? refusal : "";
    }

    /** What went wrong; empty if nothing did. */
    String failure() {
        return failure;
    }
}
