package org.millrace;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Comments and pages are written in plain English: few sentences of a folder match a pattern of indirect language, and
 * no sentence is long. A failure prints file, line, reason and sentence.
 */
class LanguageTest {

    private static final int MAX_WORDS = 30;
    private static final double MAX_FLAGGED = 0.04;
    private static final List<String> ROOTS =
            List.of("README.md", "CHANGELOG.md", "src", "bench", "headers", "jextract", ".ci");
    private static final Pattern SKIPPED = Pattern.compile("src/generated/.*|.*/target/.*");

    private static final Map<String, Pattern> REASONS = new LinkedHashMap<>();
    static {
        reason("opens with a relative or indirect clause", "^(What|Who|Whoever|Whom|Whose|Which|Those (who|that)"
                + "|As (many|few|much|often|long|soon)|So (many|much)|How (many|much|often|long|far|it|they|a|the))\\b"
                + "(?!.*\\?)");
        reason("a person for a thing", "\\b(whoever|whosoever|somebody|someone|nobody|no one|anybody|everybody)\\b");
        reason("idiom",
                "\\b((comes?|came) to (what|an end|nothing)|stands? still|go(es)? on|went on"
                        + "|(is|are|was) to be|is meant|of (its|one's) own|by (itself|themselves)|any ?more|at the most"
                        + "|behind each other|in its place|as it were|(are|is) there|there (is|are) (none|no)"
                        + "|gives? (it|this|that|itself) away)\\b");
        reason("pronoun chain", "\\b(the ones?|(that|those) of|of (those|these)|(which|whom) of"
                + "|(of|to|for|with|by|from|in) (which|whom)|whose)\\b");
        reason("free relative",
                "\\bwhat (is|are|was|were|it|they|the|a|an|has|have|had|comes|came|goes|else|this|that"
                        + "|one|others?|peers?|ranks?|can|could|must|may|would|will|needs?|follows|arrives|lies|remains"
                        + "|belongs)\\b");
        reason("opens with a preposition and a pronoun",
                "^(Of|By|For|With|To|From|In) (it|them|those|these|all|that|which|whom)\\b");
    }

    private static final Pattern COMMENT =
            Pattern.compile("/\\*\\*?(?<block>.*?)\\*/|//(?<line>[^\\n]*(?:\\n[ \\t]*//[^\\n]*)*)", Pattern.DOTALL);
    private static final Pattern HASHES = Pattern.compile("(?m)(?:^[ \\t]*#[^\\n]*\\n)+");
    private static final Pattern PARAGRAPH = Pattern.compile("(?:[^\\n]+\\n?)+");
    private static final Pattern CODE_BLOCK = Pattern.compile("(?s)```.*?```|~~~.*?~~~");
    private static final Pattern SENTENCE_END = Pattern.compile("(?<=[.;:!])\\s+|\\s+\\.\\s+");

    /** A sentence of a comment or a page. The line is the first line of the sentence's comment or paragraph. */
    private record Sentence(Path file, int line, String text) {

        List<String> reasons() {
            List<String> found = new ArrayList<>();
            REASONS.forEach((reason, pattern) -> {
                if (pattern.matcher(text).find()) {
                    found.add(reason);
                }
            });
            return found;
        }

        int words() {
            return text.split(" ").length;
        }

        String describe(Object reason) {
            return file + ":" + line + ": " + reason + ": " + text;
        }
    }

    private static void reason(String name, String pattern) {
        REASONS.put(name, Pattern.compile(pattern, Pattern.CASE_INSENSITIVE));
    }

    @Test
    void fewSentencesOfAFolderAreIndirect() throws IOException {
        List<String> failures = new ArrayList<>();
        sentences().forEach((folder, sentences) -> {
            List<String> flagged = sentences.stream()
                    .filter(sentence -> !sentence.reasons().isEmpty())
                    .map(sentence -> sentence.describe(sentence.reasons()))
                    .toList();
            if (flagged.size() > Math.max(1, MAX_FLAGGED * sentences.size())) {
                failures.add(folder + ": " + flagged.size() + " of " + sentences.size() + " sentences");
                failures.addAll(flagged);
            }
        });
        assertTrue(failures.isEmpty(), () -> String.join("\n", failures));
    }

    @Test
    void noSentenceIsLong() throws IOException {
        List<String> failures = new ArrayList<>();
        sentences().values().forEach(sentences -> {
            for (Sentence sentence : sentences) {
                if (sentence.words() > MAX_WORDS) {
                    failures.add(sentence.describe(sentence.words() + " words"));
                }
            }
        });
        assertTrue(failures.isEmpty(), () -> String.join("\n", failures));
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
            Foo.java | /** What is left of it. */                 | 1
            Foo.java | // The ring has a peer whose head moved.   | 1
            Foo.java | // Returns the number of completed passes. | 0
            foo.sh   | # As many ranks as cores are started.      | 1
            foo.md   | Nobody reads this page.                    | 1
            """)
    void indirectSentencesAreFlagged(String name, String text, int flagged) {
        assertEquals(flagged,
                sentences(Path.of(name), text + "\n").stream()
                        .filter(sentence -> !sentence.reasons().isEmpty())
                        .count());
    }

    /** Returns, by folder, the sentences of all comments and pages. */
    private static Map<String, List<Sentence>> sentences() throws IOException {
        Map<String, List<Sentence>> all = new TreeMap<>();
        for (String root : ROOTS) {
            try (Stream<Path> files = Files.walk(Path.of(root))) {
                for (Path file : (Iterable<Path>) files.filter(Files::isRegularFile)::iterator) {
                    if (file.toString().matches(".*\\.(java|c|h|cu|cuh|py|sh|md)")
                            && !SKIPPED.matcher(file.toString()).matches()) {
                        Path folder = file.getParent();
                        all.computeIfAbsent(folder == null ? "." : folder.toString(), key -> new ArrayList<>())
                                .addAll(sentences(file, Files.readString(file)));
                    }
                }
            }
        }
        return all;
    }

    private static List<Sentence> sentences(Path file, String text) {
        String name = file.toString();
        boolean page = name.endsWith(".md");
        boolean script = name.endsWith(".py") || name.endsWith(".sh");
        String content = page ? withoutCode(text) : text;
        List<Sentence> sentences = new ArrayList<>();
        int line = 1;
        int counted = 0;
        Matcher passage = (page ? PARAGRAPH : script ? HASHES : COMMENT).matcher(content);
        while (passage.find()) {
            line += (int) content.substring(counted, passage.start()).chars().filter(each -> each == '\n').count();
            counted = passage.start();
            String prose = page ? ofPage(passage.group()) : ofComment(passage, script);
            for (String part : SENTENCE_END.split(prose.replaceAll("\\s+", " "))) {
                String sentence = part.replaceAll("^[ .*`]+|[ .*`]+$", "");
                if (sentence.split(" ").length >= 3) {
                    sentences.add(new Sentence(file, line, sentence));
                }
            }
        }
        return sentences;
    }

    private static String withoutCode(String page) {
        return CODE_BLOCK.matcher(page).replaceAll(block -> "\n".repeat((int) block.group().lines().count() - 1));
    }

    /**
     * Returns a paragraph's prose. Each list item and each table cell is a sentence. For an indented block, which is
     * code, the result is empty.
     */
    private static String ofPage(String paragraph) {
        return paragraph.startsWith("    ") ? ""
                : paragraph.replaceAll("(?m)^\\s*(\\||[-*+#>]+|\\d+\\.)|\\|", " . ")
                        .replaceAll("]\\([^)]*\\)", "]")
                        .replaceAll("`[^`]*`", "`code`");
    }

    private static String ofComment(Matcher comment, boolean script) {
        String raw = script ? comment.group()
                : comment.group("block") != null ? comment.group("block") : comment.group("line");
        return raw.replaceAll("(?m)^[ \\t]*(\\*|//|#)[ \\t]?", "")
                .replaceAll("(?s)<pre>.*?</pre>|\\{@snippet.*?\\n *}", "")
                .replaceAll("\\{@\\w+ [^{}]*}", "`code`")
                .replaceAll("@(param|return|throws|see|since)\\s+\\S+", ". ")
                .replaceAll("</?(p|ul|ol|li|table|caption|tr|th|td)>", " . ");
    }
}
