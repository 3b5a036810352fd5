package org.millrace.device.gin;

/**
 * Ranks at equal distances, as {@code ncclTeam}.
 *
 * @param stride distance between two of them in the world
 */
public record GinTeam(int rank, int ranks, int stride) {

    /** A member's number in the world. */
    public int toWorld(int worldRank, int member) {
        if (member < 0 || member >= ranks) {
            throw new IndexOutOfBoundsException("rank " + member + " of a team of " + ranks);
        }
        return worldRank + (member - rank) * stride;
    }
}
