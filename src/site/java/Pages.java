import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * Creates the pages that {@code mvn site} renders from the pages in the repository. The README becomes the first page.
 * A link to a Markdown page becomes a link to a page of the site. Any other link to a file becomes a link to the
 * published sources. A link without a target fails the build.
 *
 * <p>
 * Maven runs it in the repository's root: {@code java src/site/java/Pages.java DIRECTORY SOURCES}. SOURCES is the
 * address of the repository.
 */
final class Pages {

    private static final Pattern LINK = Pattern.compile("]\\(([^)#\\s]*)(#[^)]*)?\\)");
    private static final Pattern HEADING = Pattern.compile("(?m)^#{2,4} (.+)$");
    private static final Pattern BLOCK = Pattern.compile("(?ms)^```.*?^```$");
    private static final Path MARKDOWN = Path.of("src", "site", "markdown");

    private final Map<Path, String> pages = new LinkedHashMap<>();
    private final Map<String, String> dead = new TreeMap<>();
    private final String sources;

    private Pages(String sources) throws IOException {
        this.sources = sources;
        pages.put(Path.of("README.md"), "index");
        pages.put(Path.of("CHANGELOG.md"), "changelog");
        pages.put(Path.of("bench", "README.md"), "benchmarks");
        try (Stream<Path> files = Files.walk(MARKDOWN)) {
            for (Path file : (Iterable<Path>) files.filter(Files::isRegularFile).sorted()::iterator) {
                pages.put(file, file.getFileName().toString().replace(".md", ""));
            }
        }
    }

    public static void main(String[] args) throws IOException {
        Pages site = new Pages(args[1]);
        Path directory = Path.of(args[0]);
        Files.createDirectories(directory.resolve("markdown"));
        Files.copy(Path.of("src", "site", "site.xml"), directory.resolve("site.xml"),
                StandardCopyOption.REPLACE_EXISTING);
        Path styles = Files.createDirectories(directory.resolve("resources").resolve("css"));
        Files.copy(Path.of("src", "site", "site.css"), styles.resolve("site.css"), StandardCopyOption.REPLACE_EXISTING);
        for (Map.Entry<Path, String> page : site.pages.entrySet()) {
            Files.writeString(directory.resolve("markdown").resolve(page.getValue() + ".md"),
                    site.rewrite(page.getKey()));
        }
        if (!site.dead.isEmpty()) {
            site.dead.forEach((link, page) -> System.err.println(page + ": no file for the link " + link));
            System.exit(1);
        }
    }

    private String rewrite(Path page) throws IOException {
        String text = Files.readString(page);
        StringBuilder out = new StringBuilder();
        Matcher block = BLOCK.matcher(text);
        int at = 0;
        while (block.find()) {
            out.append(prose(page, text.substring(at, block.start()))).append(block.group());
            at = block.end();
        }
        return out.append(prose(page, text.substring(at))).toString();
    }

    /**
     * Converts the text between blocks of code. Rewrites the links. Adds to each heading the anchor that it has in the
     * repository, unless the site generates the same one.
     */
    private String prose(Path page, String text) {
        String linked = LINK.matcher(text)
                .replaceAll(link -> Matcher.quoteReplacement("](" + target(page, link.group(1), link.group(2)) + ")"));
        return HEADING.matcher(linked)
                .replaceAll(heading -> Matcher.quoteReplacement(anchored(heading.group(), heading.group(1))));
    }

    private static String anchored(String line, String heading) {
        String anchor = id(anchor(heading));
        return heading.replace("`", "").equals(anchor) ? line : "<a id=\"" + anchor + "\"></a>\n\n" + line;
    }

    private String target(Path page, String link, String anchor) {
        String rest = anchor == null ? "" : anchor;
        String inSite = anchor == null ? "" : "#" + id(anchor.substring(1));
        if (link.isEmpty()) {
            return inSite;
        }
        if (link.contains("://")) {
            return link + rest;
        }
        Path file = Path.of("").toAbsolutePath().resolve(page).resolveSibling(link).normalize();
        Path inside = Path.of("").toAbsolutePath().relativize(file);
        if (pages.containsKey(inside)) {
            return pages.get(inside) + ".html" + inSite;
        }
        if (!Files.exists(file)) {
            dead.put(link, page.toString());
        }
        return sources + (Files.isDirectory(file) ? "/tree/main/" : "/blob/main/") + inside + rest;
    }

    /** Returns an anchor as an id that begins with a letter, as the renderer requires. */
    private static String id(String anchor) {
        return anchor.matches("[a-z].*") ? anchor : "a" + anchor;
    }

    private static String anchor(String heading) {
        return heading.toLowerCase(Locale.ROOT).replaceAll("[^a-z0-9 _-]", "").replace(' ', '-');
    }
}
