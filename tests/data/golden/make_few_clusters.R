# Tests by few clusters, written to few_clusters.json: Rscript make_few_clusters.R, in this folder (clubSandwich is on CRAN).
suppressMessages(library(clubSandwich))
one <- function(data, formula, cluster, groups) {
  fit <- lm(formula, data)
  V <- vcovCR(fit, cluster = data[[cluster]], type = "CR2")
  test <- function(places) {
    found <- Wald_test(fit, constrain_zero(places), V, test = "HTZ")
    list(p_value = found$p_val, statistic = found$Fstat / found$delta * found$df_num)
  }
  lapply(groups, test)
}
chicks <- read.csv("chick_weight.csv"); chicks$Diet <- factor(chicks$Diet)
cases <- read.csv("infert.csv")
found <- list(
  chick_weight = one(chicks, weight ~ Time + Diet, "Chick", list(Time = 2, Diet = 3:5, "Time Diet" = 2:5)),
  # Eight chicks, of which few have most diets.
  "eight chicks" = one(subset(chicks, Chick %in% c(1, 2, 3, 21, 22, 31, 41, 42)), weight ~ Time + Diet, "Chick",
    list(Time = 2, Diet = 3:5)),
  infert = one(cases, age ~ parity + induced + case, "stratum", list(parity = 2, induced = 3, case = 4, "parity case" = c(2, 4))))
writeLines(jsonlite::toJSON(found, digits = NA, auto_unbox = TRUE, pretty = TRUE), "few_clusters.json")
