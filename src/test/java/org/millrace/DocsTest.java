package org.millrace;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Every file, heading, class and package that a page for readers mentions exists. The README is short, and all pages
 * use common technical words.
 */
class DocsTest {

    private static final Pattern LINK = Pattern.compile("]\\(([^)#\\s]*)(?:#([^)]*))?\\)");
    private static final Pattern HEADING = Pattern.compile("(?m)^#{1,4} (.+)$");
    private static final Pattern SITE_LINK = Pattern.compile("]\\((?:([\\w-]+)\\.html)?#([^)]+)\\)");
    private static final Pattern RENDERED_ID = Pattern.compile("[A-Za-z][A-Za-z0-9_.:-]*");
    private static final int README_LINES = 150;
    /** Words with a plain English equivalent. */
    private static final Pattern NOT_OURS =
            Pattern.compile("(?i)whoever|goodbye|stranger|manieth|front door|\\bhall\\b");
    private static final Pattern SITE_ITEM = Pattern.compile("<item [^>]*href=\"([\\w-]+)\\.html\"");
    private static final Pattern EXPORTED = Pattern.compile("exports ([\\w.]+);");
    private static final Pattern DOCUMENTED = Pattern.compile("(org/millrace[\\w/]*)/\\*\\.java");
    private static final Pattern QUOTE = Pattern.compile("`([^`\n]+)`");
    private static final Pattern CODE_BLOCK = Pattern.compile("(?ms)^```.*?^```");
    /**
     * Name of a class, optionally followed by a member. The name starts with a capital letter and contains a small
     * letter.
     */
    private static final Pattern CLASS = Pattern.compile("([A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*)(\\.java|[.#(].*|::.*)?");
    private static final Pattern PACKAGE = Pattern.compile("org\\.millrace(\\.[a-z0-9]+)*");
    private static final Pattern FILE = Pattern.compile("(?:src|bench|headers|jextract)/[\\w./-]+");
    private static final Pattern DECLARATION = Pattern
            .compile("\\b(?:class|interface|enum|record)\\s+([A-Z]\\w*)|^\\s+([A-Z]\\w*)[(,;]", Pattern.MULTILINE);
    private static final List<String> OF_LIBRARIES = List.of("java.lang.", "java.lang.foreign.", "java.lang.invoke.",
            "java.util.", "java.util.concurrent.", "net.openhft.chronicle.bytes.");

    private static final Set<String> classes = new HashSet<>();

    @BeforeAll
    static void readSources() throws IOException {
        for (String root : List.of("src", "bench", "jextract")) {
            try (Stream<Path> files = Files.walk(Path.of(root))) {
                for (Path file : (Iterable<Path>) files.filter(path -> path.toString().endsWith(".java"))::iterator) {
                    DECLARATION.matcher(Files.readString(file)).results().forEach(name -> {
                        classes.add(name.group(1) == null ? name.group(2) : name.group(1));
                    });
                }
            }
        }
    }

    private static List<Path> pages() throws IOException {
        return Stream
                .concat(Stream.of(Path.of("README.md"), Path.of("CHANGELOG.md"), Path.of("bench", "README.md")),
                        pagesOfTheSite().stream())
                .toList();
    }

    private static List<Path> pagesOfTheSite() throws IOException {
        try (Stream<Path> files = Files.walk(Path.of("src", "site", "markdown"))) {
            return files.filter(file -> file.toString().endsWith(".md")).sorted().toList();
        }
    }

    @Test
    void everyRelativeLinkLeadsSomewhere() throws IOException {
        List<String> dead = new ArrayList<>();
        for (Path page : pages()) {
            Matcher link = LINK.matcher(prose(page));
            while (link.find()) {
                if (!link.group(1).contains("://") && !leadsSomewhere(page, link.group(1), link.group(2))) {
                    dead.add(page + ": " + link.group());
                }
            }
        }
        assertEquals(List.of(), dead);
    }

    private static boolean leadsSomewhere(Path page, String target, @Nullable String anchor) throws IOException {
        Path file =
                target.isEmpty() ? page : Path.of("").toAbsolutePath().resolve(page).resolveSibling(target).normalize();
        return Files.exists(file) && (anchor == null
                || HEADING.matcher(prose(file)).results().anyMatch(heading -> anchor(heading.group(1)).equals(anchor)));
    }

    /**
     * The site's generator changes each anchor that begins with a digit. It must make the same change in links to the
     * anchor.
     */
    @Test
    @Tag("slow")
    void everyAnchorOfTheSiteIsAnIdThatItsPageDefines(@TempDir Path site) throws Exception {
        Process pages = new ProcessBuilder(Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                Path.of("src", "site", "java", "Pages.java").toString(), site.toString(), "https://example.org")
                .redirectErrorStream(true)
                .start();
        String output = new String(pages.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertEquals(0, pages.waitFor(), output);
        List<String> dead = new ArrayList<>();
        int anchors = 0;
        for (Path page : pagesIn(site)) {
            for (MatchResult link : SITE_LINK.matcher(prose(page)).results().toList()) {
                String name = link.group(1) == null ? page.getFileName().toString() : link.group(1) + ".md";
                String text = prose(page.resolveSibling(name));
                String id = link.group(2);
                boolean defined = text.contains("<a id=\"" + id + "\">") || HEADING.matcher(text)
                        .results()
                        .anyMatch(heading -> heading.group(1).replace("`", "").equals(id));
                if (!defined || !RENDERED_ID.matcher(id).matches()) {
                    dead.add(page.getFileName() + ": " + link.group());
                }
                anchors++;
            }
        }
        assertEquals(List.of(), dead);
        assertTrue(anchors > 40, anchors + " anchors");
    }

    private static List<Path> pagesIn(Path site) throws IOException {
        try (Stream<Path> files = Files.list(site.resolve("markdown"))) {
            return files.sorted().toList();
        }
    }

    /** Returns the anchor that GitHub and {@code Pages.java} create for a heading. */
    private static String anchor(String heading) {
        return heading.toLowerCase(Locale.ROOT).replaceAll("[^a-z0-9 _-]", "").replace(' ', '-');
    }

    private static String prose(Path page) throws IOException {
        return CODE_BLOCK.matcher(Files.readString(page)).replaceAll("");
    }

    @Test
    void theReadmeIsAPageAndNotABook() throws IOException {
        int lines = Files.readAllLines(Path.of("README.md")).size();
        assertTrue(lines <= README_LINES, lines + " lines");
    }

    @Test
    void pagesUseTheFieldsWords() throws IOException {
        List<String> found = new ArrayList<>();
        for (Path page : pages()) {
            NOT_OURS.matcher(Files.readString(page)).results().forEach(word -> found.add(page + ": " + word.group()));
        }
        assertEquals(List.of(), found);
    }

    @Test
    void theSitesMenuHasEveryPageAndNoOther() throws IOException {
        Set<String> items = new TreeSet<>();
        Matcher item = SITE_ITEM.matcher(Files.readString(Path.of("src", "site", "site.xml")));
        while (item.find()) {
            items.add(item.group(1) + ".md");
        }
        Set<String> expected = new TreeSet<>(Set.of("index.md", "changelog.md", "benchmarks.md"));
        pagesOfTheSite().forEach(page -> {
            assertTrue(expected.add(page.getFileName().toString()), page + ": another page has this name");
        });
        assertEquals(expected, items);
    }

    @Test
    void javadocIsOfThePackagesThatTheModuleExports() throws IOException {
        assertEquals(matches(EXPORTED, Path.of("src", "main", "module", "module-info.java")),
                matches(DOCUMENTED, Path.of("pom.xml")));
    }

    private static Set<String> matches(Pattern pattern, Path file) throws IOException {
        Set<String> packages = new TreeSet<>();
        pattern.matcher(Files.readString(file)).results().forEach(each -> {
            packages.add(each.group(1).replace('/', '.'));
        });
        return packages;
    }

    @Test
    void everyClassPackageAndFileThatIsQuotedExists() throws IOException {
        List<String> unknown = new ArrayList<>();
        for (Path page : pages()) {
            Matcher quote = QUOTE.matcher(prose(page));
            while (quote.find()) {
                if (!isKnown(quote.group(1))) {
                    unknown.add(page + ": " + quote.group(1));
                }
            }
        }
        assertEquals(List.of(), unknown);
    }

    private static boolean isKnown(String quoted) {
        Matcher name = CLASS.matcher(quoted);
        if (name.matches()) {
            return classes.contains(name.group(1)) || isOfALibrary(name.group(1));
        }
        if (PACKAGE.matcher(quoted).matches()) {
            String folder = quoted.replace('.', '/');
            return Files.exists(Path.of("src/main/java", folder))
                    || Files.exists(Path.of("src/generated/java", folder));
        }
        return !FILE.matcher(quoted).matches() || Files.exists(Path.of(quoted));
    }

    private static boolean isOfALibrary(String name) {
        return OF_LIBRARIES.stream().anyMatch(prefix -> {
            try {
                Class.forName(prefix + name, false, DocsTest.class.getClassLoader());
                return true;
            } catch (ClassNotFoundException e) {
                return false;
            }
        });
    }
}
