/**
 * Networks as one would have them: a rate, a delay and its jitter, losses, and times without a network are put before
 * any network, so that programs on one host run as on hosts that are far apart; and faults, where a setting says, for
 * tests of what is above it, in our builds and in a user's cluster. It uses the contracts alone.
 */
@NullMarked
package org.millrace.net.link;

import org.jspecify.annotations.NullMarked;
