"""The loss of structured matrix scaling: curved by the likelihood in a few directions, and by the penalty in the others."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh

from calviz.core.arrays import FloatArray
from calviz.recalibrators.fitting.matrix_loss import MatrixProblem
from calviz.recalibrators.fitting.minimise import Inverse
from calviz.recalibrators.fitting.softmax_loss import dense_inverse

#: Number of directions of the off-diagonal weights of each class with exact curvature, besides diagonal and offset.
DIRECTIONS = 2
#: Number of rows from which curvatures are estimated.
_ROWS = 2_500


class StructuredProblem(MatrixProblem):
    """`MatrixProblem` with one strength for all off-diagonal weights, which grows with the number of classes (Berta et al. 2026)."""

    most_dense = 700

    @property
    def in_blocks(self) -> bool:
        """Whether the Hessian is computed class by class: never."""
        return False

    def inverse(self, x: FloatArray) -> Inverse:
        """Return an approximate inverse Hessian, from some rows: exact with few classes; with more, exact in a few directions per class.

        Log-probabilities of a row rise and fall together, so nearly all that the likelihood says about the off-diagonal weights of
        a class is along the first principal directions of its inputs. There, and for diagonal and offsets, the Hessian is
        computed jointly for all classes; elsewhere the penalty dominates, and the diagonal is enough.
        """
        return self._dense(*self._sampled(x)) if self.dense else self._along_directions(x)

    def _along_directions(self, x: FloatArray) -> Inverse:
        part = self._part(_ROWS)
        part.dtype = np.float32
        inputs, p = part._inputs_and_probabilities(x, slice(0, part.n))
        k, m = self.k, part.n
        z, diagonal = inputs[:, :-1], np.arange(k)
        strengths = 2 * self.penalty.weights
        # u: (K, directions, K), orthonormal, and 0 on the diagonal.
        doubt = 1 - np.vecdot(p, p)
        principal = eigh((z * doubt[:, None]).T @ z, subset_by_index=[k - DIRECTIONS, k - 1])[1]
        u = np.repeat(principal[None], k, axis=0)
        u[diagonal, diagonal] = 0
        u = np.linalg.qr(u)[0].transpose(0, 2, 1)
        # Derivatives of the score of class k along its diagonal weight, its offset and its directions.
        features = [z, np.ones_like(z), *(z @ u[:, a].T for a in range(DIRECTIONS))]
        weighted = [p * feature for feature in features]
        h = np.empty((len(features), k, len(features), k))
        for a, weighted_feature in enumerate(weighted):
            for b in range(a, len(features)):
                block = -(weighted_feature.T @ weighted[b]).astype(np.float64)
                block[diagonal, diagonal] += np.einsum("ij,ij->j", weighted_feature, features[b])
                h[a, :, b] = block / m
                h[b, :, a] = block.T / m
        flat = h.reshape(len(features) * k, -1)
        along = np.broadcast_to(strengths[0, 1], (DIRECTIONS, k))
        flat[np.diag_indices(flat.shape[0])] += np.concatenate(
            [strengths[diagonal, diagonal], strengths[:, -1], *along]
        )
        solve_few = dense_inverse(flat)
        # Elsewhere: the diagonal of the Hessian, minus the part that the directions explain.
        spread = p * (1 - p)
        rest = (spread.T @ (z * z)).astype(np.float64)
        for a in range(DIRECTIONS):
            explained = np.einsum("ij,ij->j", spread, features[2 + a] ** 2)
            rest -= explained[:, None] * u[:, a] ** 2
        rest = np.maximum(rest / m, 0) + strengths[:, :-1]

        def off_directions(v: FloatArray) -> FloatArray:
            v = v - np.einsum("kaj,ka->kj", u, np.einsum("kaj,kj->ka", u, v))
            v[diagonal, diagonal] = 0
            return v

        def solve(g: FloatArray) -> FloatArray:
            of_weights = g[:, :-1]
            projected = [
                of_weights[diagonal, diagonal],
                g[:, -1],
                *np.einsum("kaj,kj->ak", u, of_weights),
            ]
            solved = solve_few(np.concatenate(projected)).reshape(len(features), k)
            out = np.empty_like(g)
            out[:, :-1] = off_directions(off_directions(of_weights) / rest)
            out[:, :-1] += np.einsum("kaj,ak->kj", u, solved[2:])
            out[diagonal, diagonal], out[:, -1] = solved[0], solved[1]
            return out

        return solve
