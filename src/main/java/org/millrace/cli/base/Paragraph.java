package org.millrace.cli.base;

/** Text in lines that fit the width of a terminal. */
public final class Paragraph {

    private Paragraph() {}

    /**
     * Breaks a text between words. A word that is longer than a line, such as a path, stays whole.
     *
     * @param beginning beginning of the first line; its length is the indentation of the other lines
     * @param text      the text; its line ends are kept
     * @param width     width of a line, in characters
     */
    public static String wrap(String beginning, String text, int width) {
        String indent = " ".repeat(beginning.length());
        StringBuilder lines = new StringBuilder();
        StringBuilder line = new StringBuilder(beginning);
        boolean empty = true;
        for (String part : text.split("\n", -1)) {
            if (!empty) {
                lines.append(line).append('\n');
                line = new StringBuilder(indent);
                empty = true;
            }
            for (String word : part.strip().split(" +")) {
                if (!empty && line.length() + 1 + word.length() > width) {
                    lines.append(line).append('\n');
                    line = new StringBuilder(indent);
                    empty = true;
                }
                line.append(empty ? "" : " ").append(word);
                empty = false;
            }
        }
        return lines.append(line).toString();
    }
}
