//! Draws one of several places with probability in proportion to their weights.

/// A complete binary tree of sums: changing a weight and drawing take the logarithm of the number of
/// places. Sums are always added anew from below, so no rounding error stays behind.
#[derive(Debug, Default)]
pub(crate) struct Sampler {
    /// `sums[1]` is the total; the leaves begin at `sums.len() / 2`.
    sums: Vec<f64>,
}

impl Sampler {
    pub fn total(&self) -> f64 {
        self.sums.get(1).copied().unwrap_or(0.0)
    }

    pub fn set(&mut self, place: usize, weight: f64) {
        if place >= self.sums.len() / 2 {
            self.grow(place + 1);
        }
        let mut at = self.sums.len() / 2 + place;
        self.sums[at] = weight;
        while at > 1 {
            at /= 2;
            self.sums[at] = self.sums[2 * at] + self.sums[2 * at + 1];
        }
    }

    /// The place that `point`, uniform in [0, 1), falls on. Some place must weigh more than 0.
    pub fn at(&self, point: f64) -> usize {
        let mut rest = point * self.total();
        let mut at = 1;
        while at < self.sums.len() / 2 {
            let (left, right) = (self.sums[2 * at], self.sums[2 * at + 1]);
            // The second condition: rounding must never lead to a place that weighs nothing.
            if (rest < left || right == 0.0) && left > 0.0 {
                at *= 2;
            } else {
                rest -= left;
                at = 2 * at + 1;
            }
        }
        at - self.sums.len() / 2
    }

    fn grow(&mut self, places: usize) {
        let old = self.sums.len() / 2;
        let new = places.next_power_of_two();
        let weights = self.sums.split_off(old);
        self.sums = vec![0.0; 2 * new];
        self.sums[new..new + weights.len()].copy_from_slice(&weights);
        for at in (1..new).rev() {
            self.sums[at] = self.sums[2 * at] + self.sums[2 * at + 1];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_as_long_as_the_weights() {
        let mut sampler = Sampler::default();
        for (place, weight) in [(0, 1.0), (2, 2.0), (5, 1.0)] {
            sampler.set(place, weight);
        }
        assert_eq!(sampler.total(), 4.0);
        let at = |point| sampler.at(point);
        assert_eq!((at(0.0), at(0.249)), (0, 0)); // [0, 1/4)
        assert_eq!((at(0.25), at(0.749)), (2, 2)); // [1/4, 3/4)
        assert_eq!((at(0.75), at(0.999)), (5, 5)); // [3/4, 1)
    }

    #[test]
    fn a_place_without_weight_is_never_drawn() {
        let mut sampler = Sampler::default();
        sampler.set(3, 0.1);
        sampler.set(9, 0.3);
        sampler.set(3, 0.0);
        for point in [0.0, 0.5, 1.0 - f64::EPSILON / 2.0] {
            assert_eq!(sampler.at(point), 9);
        }
    }
}
