package org.millrace.device.gin;

/**
 * A team of ranks ({@code ncclTeam}). The numbers of the members have a constant distance.
 *
 * @param rank   index of this rank in the team
 * @param ranks  number of members
 * @param stride distance between the rank numbers of consecutive members
 */
public record GinTeam(int rank, int ranks, int stride) {

    /**
     * Returns the rank number of a member.
     *
     * @param worldRank rank number of this rank
     * @param member    index of the member in the team
     */
    public int toWorld(int worldRank, int member) {
        if (member < 0 || member >= ranks) {
            throw new IndexOutOfBoundsException("rank " + member + " of a team of " + ranks);
        }
        return worldRank + (member - rank) * stride;
    }
}
