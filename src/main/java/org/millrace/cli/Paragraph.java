package org.millrace.cli;

/** Text in lines that are no wider than a terminal. */
final class Paragraph {

    private Paragraph() {}

    /**
     * Breaks a text between words; one that is wider than a line, such as a path, stays whole.
     *
     * @param beginning of the first line; the others are indented as far
     * @param text      may have ends of lines, which stay
     * @param width     characters of a line
     */
    static String wrap(String beginning, String text, int width) {
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
