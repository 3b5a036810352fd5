package org.millrace.net.connection;

/**
 * Makes a text from another process safe for a log and a terminal. The converted text cannot forge a line, move a
 * cursor, or change the direction of the text that follows.
 */
public final class PeerText {

    /**
     * Prefix of every line of the text except the first line, so that no line of the text looks like a line of the log.
     */
    private static final String CONTINUED = "\n  | ";

    private PeerText() {}

    /** Returns a text in one line. Unprintable characters and line ends become question marks. */
    public static String line(String text) {
        StringBuilder clean = new StringBuilder(text.length());
        text.codePoints().map(point -> prints(point) ? point : '?').forEach(clean::appendCodePoint);
        return clean.toString();
    }

    /**
     * Converts a text such as a stack trace; keeps lines and tabs. A text that was converted before stays unchanged.
     */
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
