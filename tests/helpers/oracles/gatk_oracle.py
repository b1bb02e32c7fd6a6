"""GATK's aligner in plain Python: two full matrices, with run lengths for each cell."""

LOWEST = -(2**30)
CUT_OFF = -100_000_000


def gatk_align(reference, alternate, parameters, overhang):
    """Return score, offset and [(length, operation)] of an alternate and a reference (bytes)."""
    match, mismatch = parameters.match, parameters.mismatch
    opening, extending = parameters.gap_open, parameters.gap_extend
    n, m = len(reference), len(alternate)
    if overhang in ("softclip", "ignore"):
        at = reference.rfind(alternate)
        if at >= 0:
            return m * match, at, [(m, "M")]
    H = [[0] * (m + 1) for _ in range(n + 1)]
    B = [[0] * (m + 1) for _ in range(n + 1)]
    if overhang in ("indel", "leading-indel"):
        for j in range(1, m + 1):
            H[0][j] = opening + (j - 1) * extending
        for i in range(1, n + 1):
            H[i][0] = opening + (i - 1) * extending
    down, down_run = [LOWEST] * (m + 1), [0] * (m + 1)
    for i in range(1, n + 1):
        right, right_run = LOWEST, 0
        for j in range(1, m + 1):
            same = reference[i - 1] == alternate[j - 1]
            diagonal = H[i - 1][j - 1] + (match if same else mismatch)
            down[j] += extending
            if H[i - 1][j] + opening > down[j]:
                down[j], down_run[j] = H[i - 1][j] + opening, 1
            else:
                down_run[j] += 1
            right += extending
            if H[i][j - 1] + opening > right:
                right, right_run = H[i][j - 1] + opening, 1
            else:
                right_run += 1
            if diagonal >= down[j] and diagonal >= right:
                H[i][j], B[i][j] = max(CUT_OFF, diagonal), 0
            elif right >= down[j]:
                H[i][j], B[i][j] = max(CUT_OFF, right), -right_run
            else:
                H[i][j], B[i][j] = max(CUT_OFF, down[j]), down_run[j]
    p, q, overhanging = n, m, 0
    best = H[n][m]
    if overhang != "indel":
        best = LOWEST
        for i in range(1, n + 1):
            if H[i][m] >= best:
                p, best = i, H[i][m]
        if overhang != "leading-indel":
            for j in range(1, m + 1):
                if H[n][j] > best or (H[n][j] == best and abs(n - j) < abs(p - q)):
                    p, q, best = n, j, H[n][j]
                    overhanging = m - j
    out, state = [], "M"
    if overhang == "softclip" and overhanging > 0:
        out.append((overhanging, "S"))
        overhanging = 0
    length = overhanging
    while True:
        back = B[p][q]
        if back > 0:
            now, step = "D", back
            p -= step
        elif back < 0:
            now, step = "I", -back
            q -= step
        else:
            now, step = "M", 1
            p, q = p - 1, q - 1
        if now == state:
            length += step
        else:
            if length > 0:
                out.append((length, state))
            state, length = now, step
        if p <= 0 or q <= 0:
            break
    if overhang == "softclip":
        out.append((length, state))
        if q > 0:
            out.append((q, "S"))
        offset = p
    elif overhang == "ignore":
        out.append((length + q, state))
        offset = p - q
    else:
        out.append((length, state))
        if p > 0:
            out.append((p, "D"))
        elif q > 0:
            out.append((q, "I"))
        offset = 0
    return best, offset, out[::-1]
