package org.millrace.net.connection;

/**
 * What another process says, made fit for a log and a terminal: it can neither forge a line, nor move a cursor, nor
 * turn the direction of what follows.
 */
public final class PeerText {

    /** How every line but the first begins, so that none is taken for one of the log's own. */
    private static final String CONTINUED = "\n  | ";

    private PeerText() {}

    /** A text of one line; what does not print is a question mark. */
    public static String line(String text) {
        StringBuilder clean = new StringBuilder(text.length());
        text.codePoints().map(point -> prints(point) ? point : '?').forEach(clean::appendCodePoint);
        return clean.toString();
    }

    /** A text that keeps its lines and tabs, as of a stack trace. One that was treated so before stays as it is. */
    public static String lines(String text) {
        StringBuilder clean = new StringBuilder(text.length());
        text.replace(CONTINUED, "\n")
                .codePoints()
                .map(point -> prints(point) || point == '\n' || point == '\t' ? point : '?')
                .forEach(clean::appendCodePoint);
        return clean.toString().replace("\n", CONTINUED);
    }

    private static boolean prints(int point) {
        return switch (Character.getType(point)) {
            case Character.CONTROL, Character.FORMAT, Character.LINE_SEPARATOR, Character.PARAGRAPH_SEPARATOR,
                    Character.SURROGATE, Character.PRIVATE_USE, Character.UNASSIGNED ->
                false;
            default -> true;
        };
    }
}
