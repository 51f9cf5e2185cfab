"""The classifiers that are compared: features of a configuration in, name of the best system out.

The paper compares nine (section VII.A, Figure 15); its text names only the best one, the decision tree.
These are nine of the kinds in common use; to add one, write a function under ``@classifiers.register``.
All come from scikit-learn and are made anew for each fit, with a seed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.ensemble import AdaBoostClassifier, GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from tiercel.registry import Registry

Maker = Callable[[int], Any]
classifiers: Registry[Maker] = Registry("classifier")


@classifiers.register("decision-tree")
def _decision_tree(seed: int) -> Any:
    return DecisionTreeClassifier(random_state=seed)


@classifiers.register("random-forest")
def _random_forest(seed: int) -> Any:
    return RandomForestClassifier(n_estimators=200, random_state=seed)


@classifiers.register("gradient-boosting")
def _gradient_boosting(seed: int) -> Any:
    return GradientBoostingClassifier(n_estimators=100, random_state=seed)


@classifiers.register("adaboost")
def _adaboost(seed: int) -> Any:
    return AdaBoostClassifier(DecisionTreeClassifier(max_depth=3), n_estimators=100, random_state=seed)


@classifiers.register("nearest-neighbours")
def _nearest_neighbours(seed: int) -> Any:
    return make_pipeline(StandardScaler(), KNeighborsClassifier(5, weights="distance"))


@classifiers.register("logistic-regression")
def _logistic_regression(seed: int) -> Any:
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000, random_state=seed))


@classifiers.register("support-vectors")
def _support_vectors(seed: int) -> Any:
    return make_pipeline(StandardScaler(), SVC(C=10.0, random_state=seed))


@classifiers.register("naive-bayes")
def _naive_bayes(seed: int) -> Any:
    return make_pipeline(StandardScaler(), GaussianNB())


@classifiers.register("neural-network")
def _neural_network(seed: int) -> Any:
    return make_pipeline(
        StandardScaler(),
        MLPClassifier((64, 32), max_iter=300, early_stopping=True, n_iter_no_change=20, random_state=seed),
    )
